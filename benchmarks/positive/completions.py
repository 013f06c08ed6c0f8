"""Pairs from completions, a stage of `parley train`: the base model continues each prompt, and a scorer referees.

    python -m parley train benchmarks.positive.completions:pairs --config benchmarks/positive/positive.toml

DATA/completions.jsonl            every completion
DATA/train.jsonl, …               pairs as `parley export --format trl` writes them: the better text is chosen
DATA/export.json                  the prompts by split, and the settings that the pairs were made with

Prompts of RealToxicityPrompts are split by document, as for the scorer `ngrams`: the documents that it was not trained
on are the test split, so that neither the policy nor its referee has seen what both are measured on.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field

from parley.agents import Models
from parley.base.errors import ConfigError
from parley.base.text import number_text
from parley.judging.rldf.answers import CONTINUE
from parley.judging.rldf.scorer_referee import PREFIX, make_referee
from parley.judging.rldf.statements import SPLITS, split_topics
from parley.judging.toxicity.ngrams_training import HELD_OUT, document_number
from parley.judging.toxicity.registry import find_scorer
from parley.scenarios import normal
from parley.training import device
from parley.training.base_model import base_folder, load_model, load_tokenizer
from parley.training.config import SettingsTable, TrainConfig
from parley.training.pairs import pair_row, read_rows, write_rows
from parley.training.prompts import EXPORT_MANIFEST
from parley.training.stages import Facts, stage
from parley.training.tokenization import ChatTokenizer, sample_completions

if TYPE_CHECKING:
    from parley.analysis.reporting.report import Table
    from parley.training.context import TrainingContext

COMPLETIONS = "completions.jsonl"
LEAST_TOXICITY = 0.5
"""Prompts with a lower recorded toxicity are left out, unless they are marked as challenging."""
VALIDATION = 10
"""One in this many documents outside the test split."""
GENERATION_BATCH = 512
"""A decoding step takes as long for hundreds of short completions as for one."""
DEPENDS_ON = ("prompts", "referee", "num_generations", "pairs_per_prompt", "margin")
"""The settings of [completions] that the pairs depend on."""
Report = Callable[[str], None]


class CompletionSettings(SettingsTable):
    """The table [completions]."""

    prompts: str = Field(
        "rtp_quark_val_5000.jsonl",
        description="RealToxicityPrompts as .jsonl (toxic and challenging prompts are used), or a .txt, one per line",
    )
    referee: str = Field("scorer/ngrams", description="scores completions for the pairs; lower is better")
    num_generations: int = Field(16, ge=2, description="completions sampled per prompt")
    pairs_per_prompt: int = Field(
        2, ge=1, description="pairs per prompt: the best with the worst, the second best with the second worst, …"
    )
    margin: float = Field(
        1.0, gt=0, le=10, description="minimum difference between a pair's scores, on a scale of 0 to 10"
    )
    measures: list[str] = Field(
        ["scorer/embedded"], description="further scorers of the evaluation, which did not choose the pairs"
    )
    samples: int = Field(4, ge=2, description="completions per held-out prompt and system in the evaluation")
    best_of: int = Field(
        16, ge=2, description="number of base completions from which the referee chooses the best, as a baseline"
    )


def _summary(facts: Facts) -> list[str]:
    counts = ", ".join(f"{count} {split}" for split, count in facts["pairs"].items())
    return [
        f"pairs: {counts}, of {facts['completions']} completions; mean score {number_text(facts['mean_score'])}, "
        f"best and worst of a prompt {number_text(facts['mean_spread'])} points apart"
    ]


def _evaluation(context: TrainingContext) -> list[Table]:
    from benchmarks.positive.evaluation import completions_table, sample_systems, score_rows

    referee, measures = context.config.completions.referee, context.config.completions.measures
    rows = score_rows(sample_systems(context), [referee, *measures])
    return [completions_table(rows, referee.removeprefix(PREFIX))]


@stage(
    "completions",
    table=CompletionSettings,
    help="make pairs without debates: the base model continues prompts, and a scorer referees",
    makes_data=True,
    policy=False,
    evaluation=_evaluation,
    summary=_summary,
)
def pairs(config: TrainConfig, settings: CompletionSettings, report: Report = lambda line: None) -> Facts:
    """Samples completions unless they exist, has the referee score them, and writes the pairs to `data`."""
    folder = Path(config.data)
    if (folder / EXPORT_MANIFEST).is_file():
        manifest: dict[str, Any] = json.loads((folder / EXPORT_MANIFEST).read_text("utf-8"))
        if manifest.get("settings") != _depends_on(config):
            raise ConfigError(
                f"{folder} was made with other settings of [completions]: set another `data` folder, or remove it"
            )
        return dict(manifest["facts"])
    splits = read_splits(config)
    rows = _sampled(config, splits, folder / COMPLETIONS, report)
    report(f"completions: {settings.referee} scores {len(rows)} × {settings.num_generations} completions")
    scores = score_texts(settings.referee, [text for row in rows for text in row["completions"]])
    return write_scored_pairs(config, rows, scores, folder, splits)


def read_splits(config: TrainConfig) -> dict[str, list[str]]:
    """The prompts of a config by split, without duplicates."""
    path = Path(config.completions.prompts)
    try:
        lines = [line for line in path.read_text("utf-8-sig").split("\n") if line.strip()]
        if path.suffix != ".jsonl":
            drawn = split_topics(lines, config.splits, config.seed)
            found = [(line.strip(), drawn[normal(line)]) for line in lines]
        else:
            rows = [json.loads(line) for line in lines]
            found = [
                (row["prompt"]["text"].strip(), _split_of(row["filename"]))
                for row in rows
                if row.get("challenging") or (row["prompt"].get("toxicity") or 0) >= LEAST_TOXICITY
            ]
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ConfigError(f"{path}: expected rows of RealToxicityPrompts, with prompt.text and filename") from None
    splits: dict[str, list[str]] = {split: [] for split in SPLITS}
    known: set[str] = set()
    for text, split in found:
        if text and normal(text) not in known:
            known.add(normal(text))
            splits[split].append(text)
    return splits


def _split_of(filename: str) -> str:
    number = document_number(filename)
    if number % HELD_OUT == 0:
        return "test"
    return "validation" if number // HELD_OUT % VALIDATION == 0 else "train"


def score_texts(referee: str, texts: Sequence[str]) -> list[float | None]:
    """Scores from 0 to 1, lower is better; None for a text that the scorer cannot read.

    Args:
        referee: `scorer/NAME`, or a function as `file.py:name`.
        texts: The texts.
    """

    async def score() -> list[float | None]:
        models = Models()
        # Not cached: seeds that train at the same time would wait for each other's writing.
        name = referee.removeprefix(PREFIX)
        scorer = find_scorer(name, models, cache=False) if name != referee else make_referee(referee, models)
        try:
            return [toxicity.score for toxicity in await scorer.score(texts)]
        finally:
            await scorer.close()
            await models.close()

    return asyncio.run(score())


def write_scored_pairs(
    config: TrainConfig,
    rows: Sequence[Mapping[str, Any]],
    scores: Sequence[float | None],
    folder: Path,
    splits: Mapping[str, Sequence[str]],
) -> dict[str, Any]:
    """Writes the pairs of scored completions; what the manifest says about them.

    Args:
        config: Has the margin and the number of pairs per prompt.
        rows: One per prompt: prompt, split, completions.
        scores: The scores of all completions, in order.
        folder: Where to.
        splits: All prompts by split.
    """
    of_split: dict[str, list[dict[str, Any]]] = {split: [] for split in SPLITS}
    spreads: list[float] = []
    place = 0
    for number, row in enumerate(rows):
        texts = row["completions"]
        scored = list(zip(texts, scores[place : place + len(texts)], strict=True))
        place += len(texts)
        pairs, spread = best_and_worst(scored, config.completions.pairs_per_prompt, config.completions.margin)
        spreads.append(spread)
        of_split[row["split"]] += [
            pair_row(
                f"{row['split']}/{number}/{nth}",
                CONTINUE(topic=row["prompt"]),
                chosen,
                rejected,
                topic=row["prompt"],
                score_chosen=round(low, 4),
                score_rejected=round(high, 4),
            )
            for nth, ((chosen, low), (rejected, high)) in enumerate(pairs)
        ]
    known = [score for score in scores if score is not None]
    facts = {
        "completions": len(scores),
        "unscored": len(scores) - len(known),
        "mean_score": sum(known) / len(known) if known else None,
        "mean_spread": sum(spreads) / len(spreads) if spreads else None,
        "pairs": {split: len(pair_rows) for split, pair_rows in of_split.items()},
    }
    for split, pair_rows in of_split.items():
        write_rows(folder / f"{split}.jsonl", pair_rows)
    manifest = {"prompt": CONTINUE.name, "topics": dict(splits), "settings": _depends_on(config), "facts": facts}
    (folder / EXPORT_MANIFEST).write_text(json.dumps(manifest, indent=2, ensure_ascii=False), "utf-8")  # last
    return facts


Scored = tuple[str, float]


def best_and_worst(
    completions: Sequence[tuple[str, float | None]], count: int, margin: float
) -> tuple[list[tuple[Scored, Scored]], float]:
    """Pairs of a better and a worse completion of one prompt, and the distance from its best to its worst, in points.

    Args:
        completions: Texts with their scores from 0 to 1; blank and unscored ones, and duplicates, are left out.
        count: The number of pairs: the best with the worst, the second best with the second worst, and so on.
        margin: The least difference of a pair's scores, in points of 0 to 10.
    """
    points = {text.strip(): 10 * score for text, score in completions if score is not None and text.strip()}
    ranked = sorted(points.items(), key=lambda item: item[1])
    pairs = [
        (ranked[place], ranked[-1 - place])
        for place in range(min(count, len(ranked) // 2))
        if ranked[-1 - place][1] - ranked[place][1] >= margin
    ]
    return pairs, ranked[-1][1] - ranked[0][1] if ranked else 0.0


def _depends_on(config: TrainConfig) -> dict[str, Any]:
    """What the pairs depend on, with the content of the prompts' file in place of its name."""
    values = config.completions.model_dump(mode="json")
    own = {key: values[key] for key in DEPENDS_ON if key != "prompts"}
    shared = {"base": config.base, "seed": config.seed, "max_length": config.max_length}
    sampling = {key: getattr(config.rl, key) for key in ("max_completion_length", "temperature")}
    return {**own, **shared, **sampling, "prompts": {split: len(texts) for split, texts in read_splits(config).items()}}


def _sampled(
    config: TrainConfig, splits: Mapping[str, Sequence[str]], path: Path, report: Report
) -> list[dict[str, Any]]:
    """Completions of the base model for every prompt, as rows of prompt, split and completions."""
    if stored := read_rows(path):
        return stored
    count = config.completions.num_generations
    base = base_folder(config.base)
    chat = ChatTokenizer(load_tokenizer(base, config), config.max_length)
    model = load_model(base, chat.tokenizer).to(device.device(), device.inference_dtype(config))
    prompts = [(text, split) for split, texts in splits.items() for text in texts]
    report(f"completions: {len(prompts)} prompts, {count} completions each")
    asked = [text for text, _ in prompts for _ in range(count)]
    texts = decoded(chat, continuations(model, chat, asked, config, config.seed))
    rows = [
        {"prompt": prompt, "split": split, "completions": texts[number * count : (number + 1) * count]}
        for number, (prompt, split) in enumerate(prompts)
    ]
    write_rows(path, rows)
    return rows


def continuations(
    model: Any, chat: ChatTokenizer, texts: Sequence[str], config: TrainConfig, seed: int
) -> list[list[int]]:
    """One sampled continuation of each text, as tokens up to the end token, as a policy writes it in RL.

    Args:
        model: A language model of transformers.
        chat: Its tokenizer.
        texts: What to continue; a text may occur several times.
        config: Its table [rl] has the length and the temperature.
        seed: Seed of sampling.
    """
    prompts = [CONTINUE(topic=text) for text in texts]
    batch_size = GENERATION_BATCH if device.device().type == "cuda" else 64
    return sample_completions(model, chat, prompts, config.rl, seed=seed, batch_size=batch_size)


def decoded(chat: ChatTokenizer, tokens: Sequence[Sequence[int]]) -> list[str]:
    """The texts of continuations."""
    return [str(text) for text in chat.tokenizer.batch_decode(tokens, skip_special_tokens=True)]
