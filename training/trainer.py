"""What all stages share: the config, the data, the tokenizer; and how a trainer is run and its result put away."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from parley.agents import ConfigError, ParleyError
from parley.training import device
from parley.training.base import base_folder, load_tokenizer, need_packages, need_same_end
from parley.training.callbacks import Sign, TrainingLog, TrainingProgress
from parley.training.chat import Chat
from parley.training.config import TrainConfig
from parley.training.gguf_file import why_not, write_gguf
from parley.training.pairs import Pairs, read_pairs
from parley.training.prompts import Topics, read_topics
from parley.training.stage import Stage, need_room, read_manifest


@dataclass(frozen=True, slots=True)
class Course:
    config: TrainConfig
    pairs: Pairs
    base: str
    """A folder, or a name on the hub."""
    chat: Chat
    topics: Topics

    @classmethod
    def open(cls, config: TrainConfig) -> Course:
        """Everything that can fail early is tried here."""
        pairs = read_pairs(config)
        topics = read_topics(config, pairs)
        need_packages()
        device.quiet()
        base = base_folder(config.base)
        chat = Chat(load_tokenizer(base, config), config.max_length)
        for pair in (*pairs.train, *pairs.held_out()):
            chat.pair(pair)
        for prompt in (*topics.train.values(), *topics.probes().values()):
            chat.prompt(prompt)
        return cls(config, pairs, base, chat, topics)

    def prompts(self) -> list[str]:
        """The training topics as prompts, each once."""
        return list(dict.fromkeys(self.topics.train.values()))

    def stage(self, name: str) -> Stage:
        """RL is trained on topics as well as on what the pairs have taught."""
        learnt = f"{self.pairs.digest} {self.topics.train}"
        digest = hashlib.sha256(learnt.encode()).hexdigest() if name == "rl" else self.pairs.digest
        return Stage(name, self.config, digest)

    def folder(self, name: str) -> Path:
        """The result of an earlier stage, which must be there."""
        begun = self.config.begin if name == "sft" else None
        folder = Path(begun) if begun else Path(self.config.out) / name
        if read_manifest(folder) is None:
            raise ConfigError(f"there is no finished {name} stage at {folder}: parley train {name} (or all)")
        self.need_same_end(folder)
        return folder

    def need_same_end(self, folder: Path) -> None:
        """Stages that were trained with another end token, by other versions of transformers, are not built upon."""
        token, end = self.chat.tokenizer.eos_token, self.chat.tokenizer.eos_token_id
        if (found := _end(folder)) != end:
            raise ConfigError(
                f"{folder} was trained to end answers on token {found}, not on {end} ('{token}'), as its base does: "
                "name another --out, or remove it"
            )

    def no_gguf(self) -> str | None:
        """Why the trained folders will have no model.gguf, where it can be known before."""
        if not self.config.gguf:
            return "gguf = false"
        return why_not(Path(self.base)) if Path(self.base).is_dir() else None

    def need_room(self, model: Any) -> None:
        """The model, its optimizer's two moments, twice: two checkpoints stand there at a time."""
        size = sum(one.numel() for one in model.parameters())
        trained = sum(one.numel() for one in model.parameters() if one.requires_grad)
        need_room(Path(self.config.out), 4 * (3 * size + 2 * (size + 2 * trained)))


def table(rows: Sequence[Mapping[str, Any]]) -> Any:
    """Rows as TRL takes them. Of metadata nothing is handed on: a column called `margin` would enter the loss."""
    from datasets import Dataset

    return Dataset.from_list([dict(row) for row in rows])


def watchers(stage: Stage, resume: Path | None) -> tuple[TrainingLog, list[Any]]:
    log = TrainingLog(stage.log, int(resume.name.rpartition("-")[2]) if resume else 0)
    return log, [log, Sign(), TrainingProgress(stage.name)]


def hushed(trainer: Any) -> Any:
    """A trainer that prints nothing by itself: what we print may be JSON that somebody reads."""
    from transformers.trainer_callback import PrinterCallback

    trainer.remove_callback(PrinterCallback)
    return trainer


def train(trainer: Any, resume: Path | None) -> float:
    """Seconds it took."""
    begun = time.perf_counter()
    with device.enough_memory():
        hushed(trainer).train(resume_from_checkpoint=str(resume) if resume else None)
    return time.perf_counter() - begun


def put_away(course: Course, stage: Stage, trainer: Any, facts: Mapping[str, Any], *, policy: Any = None) -> None:
    """The trained model in the stage's folder: adapters merged, tokenizer beside it, read back once, signed."""
    accelerator = trainer.accelerator
    model = device.merged(accelerator.unwrap_model(policy or trainer.model))
    tokenizer = course.chat.tokenizer

    def save(part: Path) -> None:
        if not accelerator.is_main_process:
            return
        model.save_pretrained(part, state_dict=_plain_names(model))
        tokenizer.save_pretrained(part)
        _check_tokenizer(part, tokenizer)
        if stage.name != "reward" and (why := _gguf(part, course.config)):
            found["no_gguf"] = why

    found = dict(facts)
    stage.finish(save, found, main=accelerator.is_main_process)
    accelerator.wait_for_everyone()


def _gguf(folder: Path, config: TrainConfig) -> str | None:
    """Writes model.gguf, or says why there is none."""
    why = why_not(folder) if config.gguf else "gguf = false"
    if why is None:
        write_gguf(folder, short=config.gguf_type == "f16")
    return why


def _plain_names(model: Any) -> dict[str, Any]:
    """The weights on the CPU. What shares its memory on a device goes on sharing it, and is written once."""
    moved: dict[Any, Any] = {}
    return {
        name: moved.setdefault((value.data_ptr(), value.shape), value.detach().cpu().contiguous())
        for name, value in model.state_dict().items()
    }


def _check_tokenizer(folder: Path, tokenizer: Any) -> None:
    """What is saved must end answers on the token it was trained with: it did not always, and nothing complained."""
    from transformers import AutoTokenizer

    again = AutoTokenizer.from_pretrained(str(folder))
    for name in ("eos_token_id", "pad_token_id"):
        if getattr(again, name) != getattr(tokenizer, name):
            raise ParleyError(
                f"{folder}: the saved tokenizer has {name} {getattr(again, name)}, not {getattr(tokenizer, name)}: "
                "this version of transformers cannot save it"
            )
    need_same_end(again, str(folder))
    if _end(folder) != tokenizer.eos_token_id:
        raise ParleyError(f"{folder}: the saved model ends answers on another token than its tokenizer")


def _end(folder: Path) -> int | None:
    end: Any = json.loads((folder / "config.json").read_text("utf-8")).get("eos_token_id")
    return int(end[0] if isinstance(end, list) else end) if end is not None else None


def logged(trainer: Any, name: str) -> list[float]:
    return [float(line[name]) for line in trainer.state.log_history if name in line]
