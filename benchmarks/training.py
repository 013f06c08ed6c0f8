"""What training costs on one GPU, beside plain TRL: tokens/s of SFT, pairs/s of the reward model, samples/s of RL.

    python -m benchmarks.training --base local/smollm2 --json

Both rows of a stage use the same model, data, length and number of updates in the same process, one after the other:
`trl` is TRL's trainer with its defaults (its batch, its precision, recomputation on), `parley` is what `parley train`
hands to the same trainer. RL's row is repeated with larger batches, updates generated ahead and replayed steps, so
that what helps can be read off; `decoding` times the steps alone, and says whether the texts are the same. The first
updates of each row are left out (warm-up). The data is made up: statements of about 80 words, since only lengths matter
here.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from parley.training import device
from parley.training.base import base_folder, load_model, load_tokenizer, need_packages
from parley.training.chat import Chat
from parley.training.config import TrainConfig
from parley.training.rl import write_by_replay
from parley.training.trainer import table

WORDS = (
    "people",
    "often",
    "think",
    "that",
    "work",
    "at",
    "home",
    "or",
    "in",
    "town",
    "can",
    "be",
    "good",
    "for",
    "some",
)
AHEAD = 16
"""The most updates whose answers are generated at once."""


@dataclass(frozen=True)
class Row:
    stage: str
    who: str
    settings: str
    unit: str
    per_second: float
    peak_gib: float


def texts(count: int, words: int = 80) -> list[tuple[str, str]]:
    rng = random.Random(0)
    return [
        (
            f"What do you think about this? Topic {n}?",
            " ".join(rng.choice(WORDS) for _ in range(rng.randint(60, words))),
        )
        for n in range(count)
    ]


def clock() -> Any:
    """A callback that notes when each update ended."""
    from transformers import TrainerCallback

    class Clock(TrainerCallback):  # type: ignore[misc]
        def __init__(self) -> None:
            self.ends: list[float] = []

        def on_step_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
            synchronise()
            self.ends.append(time.perf_counter())

    return Clock()


def synchronise() -> None:
    import torch

    if torch.cuda.is_available():
        torch.cuda.synchronize()


@contextmanager
def measured() -> Iterator[Callable[[], float]]:
    """Peak GPU memory of what runs inside, in GiB."""
    import torch

    gc.collect()
    there = torch.cuda.is_available()
    if there:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    yield lambda: torch.cuda.max_memory_allocated() / 2**30 if there else float("nan")


def rate(trainer: Any, ticking: Any, each: float, warm: int) -> float:
    """Units a second over the updates after the warm-up, by the median time of an update."""
    from transformers.trainer_callback import PrinterCallback

    trainer.remove_callback(PrinterCallback)
    trainer.add_callback(ticking)
    trainer.train()
    gaps = [after - before for before, after in zip(ticking.ends, ticking.ends[1:], strict=False)][warm:]
    # Where answers are generated ahead, some updates generate and others do not: only a mean over all is fair.
    return each / statistics.fmean(gaps)


class Bench:
    def __init__(self, given: argparse.Namespace, folder: Path) -> None:
        self.given = given
        self.config = TrainConfig(data="", base=given.base, out=str(folder), max_length=given.length)
        self.base = base_folder(given.base)
        self.chat = Chat(load_tokenizer(self.base, self.config), given.length)
        self.folder = folder
        self.rows: list[Row] = []

    def model(self) -> Any:
        return load_model(self.base, self.chat.tokenizer)

    def common(self, steps: int) -> dict[str, Any]:
        """What both rows need to run at all here: no tracker, no checkpoints, a number of updates."""
        import torch

        return {
            "output_dir": str(self.folder / "steps"),
            "max_steps": steps,
            "report_to": "none",
            "save_strategy": "no",
            "disable_tqdm": True,
            "use_cpu": not torch.cuda.is_available(),
        } | ({} if torch.cuda.is_available() else {"bf16": False})

    def ours(self, steps: int) -> dict[str, Any]:
        return self.common(steps) | {"bf16": device.has_bf16(self.config), "gradient_checkpointing": False}

    def note(
        self, stage: str, who: str, settings: str, unit: str, make: Callable[[], Any], each: float, warm: int
    ) -> None:
        ticking = clock()
        try:
            with measured() as peak:
                found = rate(make(), ticking, each, warm)
                self.rows.append(Row(stage, who, settings, unit, found, peak()))
        except Exception as error:  # one row that fails must not lose the others
            self.rows.append(
                Row(stage, who, f"{settings}: {' '.join(str(error).split())[:120]}", unit, float("nan"), 0)
            )
        print(self.rows[-1], file=sys.stderr, flush=True)

    def sft(self) -> None:
        from trl import SFTConfig, SFTTrainer

        steps = self.given.steps
        for who, batch, args in (("trl", 8, self.common(steps)), ("parley", 16, self.ours(steps)),
                                 ("parley", 64, self.ours(steps))):  # fmt: skip
            rows = [self.chat.example(*one) for one in texts(batch * (steps + 1))]
            tokens = statistics.fmean(len(row["input_ids"]) for row in rows) * batch
            self.note(
                "sft", who, f"batch {batch}", "tokens/s",
                lambda args=args, batch=batch, rows=rows: SFTTrainer(
                    model=self.model(),
                    args=SFTConfig(**args, per_device_train_batch_size=batch, max_length=self.given.length),
                    train_dataset=table(rows),
                    processing_class=self.chat.tokenizer,
                ),
                tokens, self.given.warm,
            )  # fmt: skip

    def reward(self) -> None:
        from transformers import AutoModelForSequenceClassification
        from trl import RewardConfig, RewardTrainer

        steps = self.given.steps
        for who, batch, args in (("trl", 8, self.common(steps)), ("trl", 32, self.common(steps)),
                                 ("parley", 32, self.ours(steps))):  # fmt: skip
            said = texts(2 * batch * (steps + 1))
            half = len(said) // 2
            rows = [
                {"chosen_ids": self.chat.whole(*good), "rejected_ids": self.chat.whole(*bad)}
                for good, bad in zip(said[:half], said[half:], strict=True)
            ]

            def make(args: Any = args, batch: int = batch, rows: Any = rows) -> Any:
                model = AutoModelForSequenceClassification.from_pretrained(self.base, num_labels=1, dtype="float32")
                model.config.pad_token_id = self.chat.tokenizer.pad_token_id
                return RewardTrainer(
                    model=model,
                    args=RewardConfig(**args, per_device_train_batch_size=batch, max_length=self.given.length),
                    train_dataset=table(rows),
                    processing_class=self.chat.tokenizer,
                )

            self.note("reward", who, f"batch {batch}", "pairs/s", make, batch, self.given.warm)

    def rl(self) -> None:
        """64 answers an update as TRL's users have them, then what `parley train` does with the same and with more."""
        answers = self.given.answers
        plan = [
            ("trl", "defaults", answers, 1, False),
            ("parley", "steps not replayed", answers, 1, False),
            ("parley", "as it is", answers, 1, True),
            ("parley", "… generated 4 updates ahead", answers, 4, True),
            ("parley", f"… generated {AHEAD} updates ahead", answers, AHEAD, True),
            ("parley", "… 4 times the answers", 4 * answers, 1, True),
        ]
        for who, settings, batch, ahead, replay in plan:
            # Whole rounds of generating and learning are timed, after one that is not: the first is slower.
            warm = max(ahead, self.given.rl_warm)
            steps = warm + ahead * max(1, self.given.rl_steps // ahead) + 1
            args = self.common(steps) if who == "trl" else self.ours(steps)
            self.note("rl", who, f"{batch} answers an update, {settings}", "samples/s",
                      lambda b=batch, a=ahead, g=args, r=replay: self._rloo(b, a, g, replay=r),
                      batch, warm)  # fmt: skip

    def decoding(self) -> None:
        """The same greedy answers, steps as they are and replayed: how long, and whether the texts are the same."""
        import torch

        from parley.agents.models.cuda_graphs import cuda_graph_decoding

        tokenizer, many, tokens = self.chat.tokenizer, self.given.decoded, 100
        tokenizer.padding_side = "left"
        prompts = [prompt * (1 + at % 5) for at, (prompt, _) in enumerate(texts(many))]
        where, dtype = device.device(), device.dtype(self.config)
        model = self.model().to(device=where, dtype=dtype).eval()
        asked = tokenizer(prompts, return_tensors="pt", padding=True).to(where)
        said = {}
        for who, replay in (("plain", False), ("parley", True), ("plain", False), ("parley", True)):
            begun = time.perf_counter()
            length = asked["input_ids"].shape[1] + tokens
            with torch.inference_mode(), measured() as peak, cuda_graph_decoding(model, length, enabled=replay) as fast:
                said[who] = model.generate(
                    **asked, **fast, max_new_tokens=tokens, min_new_tokens=tokens, do_sample=False
                ).tolist()
                took = time.perf_counter() - begun
                settings = f"{many} answers of {tokens} tokens" + (", steps replayed" if replay else "")
                self.rows.append(Row("decoding", who, settings, "steps/s", tokens / took, peak()))
            print(self.rows[-1], file=sys.stderr, flush=True)
        same = sum(a == b for a, b in zip(said["plain"], said["parley"], strict=True))
        print(f"decoding: {same} of {many} texts are the same", file=sys.stderr)

    def _rloo(self, batch: int, ahead: int, args: dict[str, Any], *, replay: bool) -> Any:
        from trl import RLOOConfig, RLOOTrainer

        tokenizer = self.chat.tokenizer
        tokenizer.padding_side = "left"

        def by_length(prompts: Any, completions: Any, completion_ids: Any, **more: Any) -> list[float]:
            return [float(len(ids)) for ids in completion_ids]

        trainer = RLOOTrainer(
            model=self.model(),
            reward_funcs=[by_length],
            args=RLOOConfig(
                **args,
                per_device_train_batch_size=batch,
                steps_per_generation=ahead,
                num_generations=4,
                max_completion_length=self.given.tokens,
                generation_kwargs={"min_new_tokens": self.given.tokens},  # every row writes the same number of tokens
            ),
            train_dataset=table([{"prompt": self.chat.messages(prompt)} for prompt, _ in texts(4096)]),
            processing_class=tokenizer,
        )
        if replay:
            write_by_replay(trainer)
        return trainer


def _gib(peak: float) -> str:
    return "–" if peak != peak else f"{peak:.2f}"


def show(rows: list[Row], about: str) -> str:
    lines = [about, f"{'stage':<7} {'who':<7} {'rate':>10} {'unit':<10} {'peak GiB':>8}  settings"]
    lines += [
        f"{r.stage:<7} {r.who:<7} {r.per_second:>10.1f} {r.unit:<10} {_gib(r.peak_gib):>8}  {r.settings}" for r in rows
    ]
    plain = next((r.per_second for r in rows if r.stage == "rl" and r.who == "trl"), float("nan"))
    best = max((r.per_second for r in rows if r.stage == "rl" and r.who == "parley" and r.per_second == r.per_second),
               default=float("nan"))  # fmt: skip
    if best == best and plain == plain:
        lines.append(f"RL: best of ours is {best / plain:.2f} times TRL's defaults")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", default="local/smollm2")
    parser.add_argument("--stages", default="sft,reward,rl,decoding")
    parser.add_argument("--steps", type=int, default=30, help="updates of SFT and the reward model")
    parser.add_argument("--rl-steps", type=int, default=8, help="updates of RL that are timed, about")
    parser.add_argument("--rl-warm", type=int, default=2, help="updates of RL left out, at least")
    parser.add_argument("--warm", type=int, default=5, help="updates of SFT and the reward model left out")
    parser.add_argument("--answers", type=int, default=64, help="answers of an RL update")
    parser.add_argument("--tokens", type=int, default=64, help="tokens of an answer")
    parser.add_argument("--decoded", type=int, default=200, help="answers of the stage decoding")
    parser.add_argument("--length", type=int, default=512)
    parser.add_argument("--out", help="a JSON file to write")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    need_packages()
    device.quiet()
    import torch
    import transformers
    import trl

    where = torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"
    about = f"{where}; torch {torch.__version__}, transformers {transformers.__version__}, trl {trl.__version__}"
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(given, Path(folder))
        for stage in given.stages.split(","):
            getattr(bench, stage)()
    found = json.dumps({"about": about, "given": vars(given), "rows": [vars(row) for row in bench.rows]}, indent=2)
    if given.out:
        Path(given.out).write_text(found, "utf-8")
    print(found if given.json else show(bench.rows, about))


if __name__ == "__main__":
    main()
