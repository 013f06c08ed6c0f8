"""What all stages share: the config, the data, the tokenizer; and how a trainer is run and its result put away."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agents import ConfigError, ParleyError
from training import device
from training.base import base_folder, load_tokenizer, need_packages
from training.chat import Chat
from training.config import TrainConfig
from training.gguf_file import why_not, write_gguf
from training.pairs import Pairs, read_pairs
from training.stage import Stage, need_room, read_manifest
from training.watch import Log, Progress, Sign


@dataclass(frozen=True, slots=True)
class Course:
    config: TrainConfig
    pairs: Pairs
    base: str
    """A folder, or a name on the hub."""
    chat: Chat

    @classmethod
    def open(cls, config: TrainConfig) -> Course:
        """Everything that can fail early is tried here."""
        pairs = read_pairs(config)
        need_packages()
        device.quiet()
        base = base_folder(config.base)
        chat = Chat(load_tokenizer(base, config), config.max_length)
        for pair in (*pairs.train, *pairs.held_out()):
            chat.pair(pair)
        return cls(config, pairs, base, chat)

    def stage(self, name: str) -> Stage:
        return Stage(name, self.config, self.pairs.digest)

    def folder(self, name: str) -> Path:
        """The result of an earlier stage, which must be there."""
        begun = self.config.begin if name == "sft" else None
        folder = Path(begun) if begun else Path(self.config.out) / name
        if read_manifest(folder) is None:
            raise ConfigError(f"there is no finished {name} stage at {folder}: parley train {name} (or all)")
        return folder

    def need_room(self, model: Any) -> None:
        """The model, its optimizer's two moments, twice: two checkpoints stand there at a time."""
        size = sum(one.numel() for one in model.parameters())
        trained = sum(one.numel() for one in model.parameters() if one.requires_grad)
        need_room(Path(self.config.out), 4 * (3 * size + 2 * (size + 2 * trained)))


def table(rows: Sequence[Mapping[str, Any]]) -> Any:
    """Rows as TRL takes them. Of metadata nothing is handed on: a column called `margin` would enter the loss."""
    from datasets import Dataset

    return Dataset.from_list([dict(row) for row in rows])


def watchers(stage: Stage, resume: Path | None) -> tuple[Log, list[Any]]:
    log = Log(stage.log, int(resume.name.rpartition("-")[2]) if resume else 0)
    return log, [log, Sign(), Progress(stage.name)]


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
        if course.config.gguf and stage.name != "reward" and why_not(part) is None:
            write_gguf(part)

    stage.finish(save, facts, main=accelerator.is_main_process)
    accelerator.wait_for_everyone()


def _plain_names(model: Any) -> dict[str, Any]:
    return {name: value.detach().cpu().contiguous() for name, value in model.state_dict().items()}


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
    if json.loads((folder / "config.json").read_text("utf-8")).get("eos_token_id") != tokenizer.eos_token_id:
        raise ParleyError(f"{folder}: the saved model ends answers on another token than its tokenizer")


def logged(trainer: Any, name: str) -> list[float]:
    return [float(line[name]) for line in trainer.state.log_history if name in line]
