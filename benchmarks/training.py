"""Speed and memory of training on one GPU, compared with plain TRL: tokens/s of SFT, pairs/s of the reward model,
samples/s of RL.

    python -m benchmarks.training --base local/smollm2

The rows of a stage use the same model, data, length and number of updates in the same process, one after the other:
`trl` is TRL's trainer with its defaults (its batch size, its precision, gradient checkpointing), `parley` is the same
trainer with the arguments of `parley train`. RL is also run with a larger batch, to see what it gains. The first
updates of each row are warm-up and not timed. The data is made up: statements of about 80 words, since only lengths
matter here.
"""

from __future__ import annotations

import argparse
import gc
import math
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from parley.training import device
from parley.training.base_model import base_folder, load_model, load_tokenizer, require_packages
from parley.training.config import TrainConfig
from parley.training.context import ChatTokenizer
from parley.training.stage_run import to_dataset

WORDS = (
    *("people", "often", "think", "that", "work", "at", "home", "or", "in", "town", "can", "be"),
    *("good", "for", "some"),
)


@dataclass(frozen=True, kw_only=True)
class BenchmarkRow:
    stage: str
    trainer: str
    settings: str
    unit: str
    per_second: float
    peak_gib: float


def texts(count: int) -> list[tuple[str, str]]:
    rng = random.Random(0)
    return [
        (
            f"What do you think about this? Topic {n}?",
            " ".join(rng.choice(WORDS) for _ in range(rng.randint(60, 80))),
        )
        for n in range(count)
    ]


def update_clock() -> Any:
    """A callback with the times at which updates ended."""
    from transformers import TrainerCallback

    class UpdateClock(TrainerCallback):  # type: ignore[misc]
        def __init__(self) -> None:
            self.ends: list[float] = []

        def on_step_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
            synchronize()
            self.ends.append(time.perf_counter())

    return UpdateClock()


def synchronize() -> None:
    import torch

    if torch.cuda.is_available():
        torch.cuda.synchronize()


@contextmanager
def peak_memory() -> Iterator[Callable[[], float]]:
    """Gives a function that reads the peak GPU memory since the start of the block, in GiB."""
    import torch

    gc.collect()
    has_gpu = torch.cuda.is_available()
    if has_gpu:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    yield lambda: torch.cuda.max_memory_allocated() / 2**30 if has_gpu else float("nan")


def units_per_second(trainer: Any, clock: Any, units_per_update: float, warm_up: int) -> float:
    """Trains; units (tokens, pairs, samples) per second over the updates after the warm-up."""
    from transformers.trainer_callback import PrinterCallback

    trainer.remove_callback(PrinterCallback)
    trainer.add_callback(clock)
    trainer.train()
    gaps = [after - before for before, after in zip(clock.ends, clock.ends[1:], strict=False)][warm_up:]
    return units_per_update / statistics.fmean(gaps)


class TrainingBenchmark:
    def __init__(self, options: argparse.Namespace, folder: Path) -> None:
        self.options = options
        self.config = TrainConfig(data="", base=options.base, out=str(folder), max_length=options.length)
        self.base = base_folder(options.base)
        self.chat = ChatTokenizer(load_tokenizer(self.base, self.config), options.length)
        self.folder = folder
        self.rows: list[BenchmarkRow] = []

    def model(self) -> Any:
        return load_model(self.base, self.chat.tokenizer)

    def trl_arguments(self, steps: int) -> dict[str, Any]:
        """TRL's defaults, but for what a benchmark needs: no tracker, no checkpoints, a number of updates."""
        import torch

        return {
            "output_dir": str(self.folder / "steps"),
            "max_steps": steps,
            "report_to": "none",
            "save_strategy": "no",
            "disable_tqdm": True,
            "use_cpu": not torch.cuda.is_available(),
        } | ({} if torch.cuda.is_available() else {"bf16": False})

    def parley_arguments(self, steps: int) -> dict[str, Any]:
        return self.trl_arguments(steps) | {"bf16": device.use_bf16(self.config), "gradient_checkpointing": False}

    def measure(
        self,
        make: Callable[[], Any],
        *,
        stage: str,
        trainer: str,
        settings: str,
        unit: str,
        units_per_update: float,
        warm_up: int,
    ) -> None:
        """Adds a row for the trainer that `make` gives."""
        try:
            with peak_memory() as peak:
                rate, peak_gib = units_per_second(make(), update_clock(), units_per_update, warm_up), peak()
        except Exception as error:  # one row that fails must not lose the others
            settings, rate, peak_gib = f"{settings}: {' '.join(str(error).split())[:120]}", float("nan"), 0.0
        self.add_row(stage=stage, trainer=trainer, settings=settings, unit=unit, per_second=rate, peak_gib=peak_gib)

    def add_row(self, **values: Any) -> None:
        self.rows.append(BenchmarkRow(**values))
        print(self.rows[-1], file=sys.stderr, flush=True)

    def sft(self) -> None:
        from trl import SFTConfig, SFTTrainer

        steps = self.options.steps
        for trainer, batch, args in (
            ("trl", 8, self.trl_arguments(steps)),
            ("parley", 16, self.parley_arguments(steps)),
            ("parley", 64, self.parley_arguments(steps)),
        ):
            rows = [self.chat.sft_example(prompt, text) for prompt, text in texts(batch * (steps + 1))]

            def make(args: Any = args, batch: int = batch, rows: Any = rows) -> Any:
                return SFTTrainer(
                    model=self.model(),
                    args=SFTConfig(**args, per_device_train_batch_size=batch, max_length=self.options.length),
                    train_dataset=to_dataset(rows),
                    processing_class=self.chat.tokenizer,
                )

            self.measure(
                make,
                stage="sft",
                trainer=trainer,
                settings=f"batch {batch}",
                unit="tokens/s",
                units_per_update=statistics.fmean(len(row["input_ids"]) for row in rows) * batch,
                warm_up=self.options.warm,
            )

    def reward(self) -> None:
        from transformers import AutoModelForSequenceClassification
        from trl import RewardConfig, RewardTrainer

        steps = self.options.steps
        for trainer, batch, args in (
            ("trl", 8, self.trl_arguments(steps)),
            ("trl", 32, self.trl_arguments(steps)),
            ("parley", 32, self.parley_arguments(steps)),
        ):
            conversations = [self.chat.conversation(*text) for text in texts(2 * batch * (steps + 1))]
            half = len(conversations) // 2
            rows = [
                {"chosen_ids": chosen, "rejected_ids": rejected}
                for chosen, rejected in zip(conversations[:half], conversations[half:], strict=True)
            ]

            def make(args: Any = args, batch: int = batch, rows: Any = rows) -> Any:
                model = AutoModelForSequenceClassification.from_pretrained(self.base, num_labels=1, dtype="float32")
                model.config.pad_token_id = self.chat.tokenizer.pad_token_id
                return RewardTrainer(
                    model=model,
                    args=RewardConfig(**args, per_device_train_batch_size=batch, max_length=self.options.length),
                    train_dataset=to_dataset(rows),
                    processing_class=self.chat.tokenizer,
                )

            self.measure(
                make,
                stage="reward",
                trainer=trainer,
                settings=f"batch {batch}",
                unit="pairs/s",
                units_per_update=batch,
                warm_up=self.options.warm,
            )

    def rl(self) -> None:
        """TRL's defaults, then the settings of `parley train` with the same number of completions and with more."""
        completions, steps = self.options.answers, self.options.rl_warm + self.options.rl_steps + 1
        for trainer, batch, args in (
            ("trl", completions, self.trl_arguments(steps)),
            ("parley", completions, self.parley_arguments(steps)),
            ("parley", 4 * completions, self.parley_arguments(steps)),
        ):
            self.measure(
                partial(self._rloo_trainer, batch, args),
                stage="rl",
                trainer=trainer,
                settings=f"{batch} completions per update",
                unit="samples/s",
                units_per_update=batch,
                warm_up=self.options.rl_warm,
            )

    def _rloo_trainer(self, batch: int, args: dict[str, Any]) -> Any:
        from trl import RLOOConfig, RLOOTrainer

        tokenizer = self.chat.tokenizer
        tokenizer.padding_side = "left"

        def by_length(prompts: Any, completions: Any, completion_ids: Any, **more: Any) -> list[float]:
            return [float(len(ids)) for ids in completion_ids]

        return RLOOTrainer(
            model=self.model(),
            reward_funcs=[by_length],
            args=RLOOConfig(
                **args,
                per_device_train_batch_size=batch,
                num_generations=4,
                max_completion_length=self.options.tokens,
                generation_kwargs={"min_new_tokens": self.options.tokens},  # every row has the same number
            ),
            train_dataset=to_dataset([{"prompt": self.chat.messages(prompt)} for prompt, _ in texts(4096)]),
            processing_class=tokenizer,
        )


def _gib(peak: float) -> str:
    return "–" if math.isnan(peak) else f"{peak:.2f}"


def as_text(rows: list[BenchmarkRow], about: str) -> str:
    lines = [about, f"{'stage':<8} {'trainer':<7} {'rate':>10} {'unit':<10} {'peak GiB':>8}  settings"]
    for row in rows:
        lines.append(
            f"{row.stage:<8} {row.trainer:<7} {row.per_second:>10.1f} {row.unit:<10} {_gib(row.peak_gib):>8}  "
            f"{row.settings}"
        )
    rates: dict[str, list[float]] = {"trl": [], "parley": []}
    for row in rows:
        if row.stage == "rl" and not math.isnan(row.per_second):
            rates[row.trainer].append(row.per_second)
    if rates["trl"] and rates["parley"]:
        lines.append(
            f"RL: the fastest row of parley is {max(rates['parley']) / rates['trl'][0]:.2f} times TRL's defaults"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", default="local/smollm2")
    parser.add_argument("--stages", default="sft,reward,rl")
    parser.add_argument("--steps", type=int, default=30, help="updates of SFT and the reward model")
    parser.add_argument("--rl-steps", type=int, default=8, help="updates of RL that are timed")
    parser.add_argument("--rl-warm", type=int, default=2, help="updates of RL that are warm-up")
    parser.add_argument("--warm", type=int, default=5, help="updates of SFT and the reward model that are warm-up")
    parser.add_argument("--answers", type=int, default=64, help="completions per RL update")
    parser.add_argument("--tokens", type=int, default=64, help="tokens of a completion")
    parser.add_argument("--length", type=int, default=512, help="maximum tokens of prompt and answer")
    options = parser.parse_args()
    require_packages()
    device.silence_libraries()
    import torch
    import transformers
    import trl

    hardware = torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"
    about = f"{hardware}; torch {torch.__version__}, transformers {transformers.__version__}, trl {trl.__version__}"
    with tempfile.TemporaryDirectory() as folder:
        benchmark = TrainingBenchmark(options, Path(folder))
        for stage in options.stages.split(","):
            getattr(benchmark, stage)()
    print(as_text(benchmark.rows, about))


if __name__ == "__main__":
    main()
