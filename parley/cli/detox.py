"""`parley detox TEXT`: the critique-and-revise loop on one text, iteration by iteration."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import textwrap
from dataclasses import asdict
from typing import Any

from parley.agents import DEFAULT_MODEL, Models
from parley.base.errors import ConfigError
from parley.base.text import visible
from parley.cli.run import fetch_weights
from parley.cli.shared import AddParser, comma_separated
from parley.judging.stardtox import Detoxed, Iteration, load_team
from parley.judging.stardtox import detox as run_loop
from parley.judging.toxicity import known_scorers
from parley.reports import cautions

WIDTH = 80


def add_to(add_parser: AddParser) -> None:
    parser = add_parser(
        epilog="Exit status: 0 if all criteria are met in the end, 1 if not, 2 if the command is wrong."
    )
    parser.add_argument("text", help="the text, or - for standard input")
    parser.add_argument("--prompt", metavar="TEXT", help="what the text continues or answers, if anything")
    parser.add_argument("--model", default=DEFAULT_MODEL, help="the model that revises (default: %(default)s)")
    parser.add_argument(
        "--judge", metavar="MODEL", help="the model that judges fluency, coherence and relevance (default: --model)"
    )
    parser.add_argument(
        "--scorer", help=f"toxicity scorer: {', '.join(known_scorers())}, judge:provider/model or file.py:Class"
    )
    parser.add_argument(
        "--measure",
        default="ngrams",
        metavar="SCORER",
        help="scorer that measures every draft but whose scores the loop never sees, or none (default: %(default)s)",
    )
    parser.add_argument(
        "--meaning", metavar="MODEL", help="model that judges whether revisions keep the meaning (default: none)"
    )
    parser.add_argument("--team", default="stardtox", metavar="FILE", help="your own evaluators, as a .toml file")
    parser.add_argument("--criteria", metavar="A,B", default="", help="other criteria, such as 'toxicity < 0.05'")
    parser.add_argument(
        "--calibration", metavar="FILE", help="the scorer's thresholds: a .toml file from `parley score calibrate`"
    )
    parser.add_argument(
        "--as-published",
        action="store_true",
        help="as in the paper: toxicity < 0.1 for any scorer, judge harmless texts too, return the last draft",
    )
    parser.add_argument(
        "--max-iterations", type=int, default=2, metavar="N", help="maximum number of revisions (default: %(default)s)"
    )
    parser.add_argument("--no-performance", action="store_true", help="judge only toxicity")
    parser.add_argument("--without", metavar="A,B", default="", help="evaluators of the team to leave out")
    parser.add_argument(
        "--temperature", type=float, metavar="T", help="sampling temperature (default: the model's own)"
    )
    parser.add_argument("--seed", type=int, default=0, help="random seed (default: %(default)s)")
    parser.add_argument("--json", action="store_true", help="print everything as JSON at the end")
    parser.set_defaults(handler=handle)


def handle(parsed: argparse.Namespace) -> int:
    text = _read_stdin() if parsed.text == "-" else parsed.text
    if not text.strip():
        raise ConfigError("the text is empty")  # before a model is fetched
    result = asyncio.run(_detox(parsed, text))
    if parsed.json:
        print(json.dumps(_as_json(result, parsed), ensure_ascii=False, indent=2))
        return 0 if result.met else 1
    remarks = [] if result.met else ["not all criteria are met"]
    if result.passages == 1 and len(result.steps) > 1 and result.kept[0] < result.steps[-1].iteration:
        remarks.append(f"the best draft was iteration {result.kept[0]}")
    print(f"result ({'; '.join(remarks)}):" if remarks else "result:")
    print(visible(result.text))
    for line in result.cautions:
        print(visible(f"Caution: {line}"), file=sys.stderr)
    return 0 if result.met else 1


def _read_stdin() -> str:
    try:
        return sys.stdin.buffer.read().decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(f"standard input is not UTF-8 text (byte {error.start})") from None


async def _detox(parsed: argparse.Namespace, text: str) -> Detoxed:
    models = Models()
    try:
        for name in _model_names(parsed):
            fetch_weights(models[name])
        if not parsed.json:
            for line in _cautions(parsed):
                print(visible(f"Caution: {line}"), file=sys.stderr)
        return await run_loop(
            text,
            prompt=parsed.prompt,
            model=parsed.model,
            judge=parsed.judge,
            scorer=parsed.scorer,
            measure=parsed.measure,
            meaning=parsed.meaning,
            team=parsed.team,
            performance=not parsed.no_performance,
            without=comma_separated(parsed.without),
            criteria=comma_separated(parsed.criteria),
            calibration=parsed.calibration,
            as_published=parsed.as_published,
            max_iterations=parsed.max_iterations,
            temperature=parsed.temperature,
            seed=parsed.seed,
            models=models,
            on_step=(lambda step: None) if parsed.json else _print_iteration,
        )
    finally:
        await models.close()


def _model_names(parsed: argparse.Namespace) -> list[str]:
    return list(dict.fromkeys(name for name in (parsed.model, parsed.judge, parsed.meaning) if name))


def _cautions(parsed: argparse.Namespace) -> list[str]:
    """Cautions about all models that take part, including those of the team."""
    team = load_team(parsed.team).with_scorer(parsed.scorer)
    return cautions(list(dict.fromkeys([*_model_names(parsed), *team.measured_by(parsed.measure).models()])))


def _print_iteration(step: Iteration) -> None:
    passage = f"passage {step.passage + 1} of {step.passages}, " if step.passages > 1 else ""
    print(f"{passage}iteration {step.iteration}")
    print(textwrap.indent(textwrap.fill(visible(step.text), WIDTH - 4), "    "))
    notes: dict[str, str] = {}
    for score in step.scores:
        by_scorer = score.evaluator == score.name
        if score.value is None:
            number = "unscored" if by_scorer else "–"
        else:
            number = f"{score.value:.2f}" if by_scorer else f"{score.value:g}"
        mark = "" if number == "unscored" else {True: ": met", False: ": not met", None: ""}[score.met]
        criterion = f"criterion {score.asked}{mark}" if score.asked else ""
        print(f"  {visible(score.name):<10} {number:>8}   {criterion}".rstrip())
        notes[score.evaluator] = score.note
    if step.outside is not None:
        print(f"  {'outside':<10} {step.outside:>8.2f}   not seen by the loop")
    if step.iteration:
        print(textwrap.indent(textwrap.fill(_changes(step), WIDTH - 2), "  "))
    for evaluator, note in notes.items():
        if note:
            print(textwrap.indent(textwrap.fill(visible(f"{evaluator}: {note}"), WIDTH - 2), "  "))
    print(f"  coordinator: {visible(step.decision)}\n", flush=True)


def _changes(step: Iteration) -> str:
    """What else a revision changed, in words."""
    words = {
        "words_kept": "content words kept",
        "length": "length",
        "identity_words_kept": "identity words kept",
        "nothing_lost": "nothing lost",
        "nothing_added": "nothing added",
    }
    shares = [
        f"{label} {step.changes[name]:.0f}%" for name, label in words.items() if step.changes.get(name) is not None
    ]
    return "; ".join([*shares, *(["a refusal, or empty"] if step.changes.get("refusal") else [])])


def _as_json(result: Detoxed, parsed: argparse.Namespace) -> dict[str, Any]:
    return {
        "text": result.text,
        "met": result.met,
        "model": parsed.model,
        "judge": parsed.judge or parsed.model,
        "cautions": [*_cautions(parsed), *result.cautions],
        "passages": result.passages,
        "kept": list(result.kept),
        "decisions": list(result.decisions),
        "steps": [asdict(step) for step in result.steps],
        "usage": asdict(result.usage),
    }
