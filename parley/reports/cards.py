"""The judge's card in a file, either a card's JSON or a run: its lines, and the model and data behind them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from parley.agents import ConfigError
from parley.agents.providers import provider_of
from parley.analysis.card.lines import card_lines
from parley.analysis.card.record import BatteryRecord, Card, DataRecord, ModelRecord, RunRecord, write_card
from parley.analysis.known_order import SEVERE
from parley.analysis.malibu.ballots import SAMPLED_TEXT
from parley.analysis.reporting.figures import save
from parley.analysis.reporting.report import SIMULATED
from parley.analysis.reporting.verdicts import MissingColumns
from parley.base.text import plural
from parley.judging.card.battery import load_battery, published_reads
from parley.reports.loading import LoadedRun, load_run
from parley.reports.remarks import repeated_remarks
from parley.runs import RunFile, explain_damage
from parley.scenarios import read_directions

STUDY, MALIBU = "card", "malibu"
RUN_SUFFIXES = (".sqlite", ".sqlite.gz")


def make_card(path: Path) -> Card:
    """The card of a run of the study `card`; ConfigError if it is another, or not done.

    Args:
        path: The run file.
    """
    with explain_damage(path):
        with RunFile.open(path) as file:
            study = file.info().get("study")
            if study not in (STUDY, MALIBU):
                raise ConfigError(f"{path} is a run of '{study}'; a card is made by parley card MODEL")
            left = sum(count for status, count in file.counts().items() if status != "done")
            _, ((tokens_in, tokens_out, began),) = file.rows(
                "SELECT total(c.prompt_tokens), total(c.completion_tokens), (SELECT min(started_at) FROM units) "
                "FROM calls c JOIN units u ON u.id = c.unit WHERE u.status = 'done'"
            )
        if left:
            raise ConfigError(f"{path} has {plural(left, 'unit')} left to do: run the same command again to resume it")
        run = load_run(path)
    plan = run.analysis_plan.plan if run.analysis_plan and run.analysis_plan.intact else None
    if plan is None:
        raise ConfigError(f"{path} has no intact analysis plan, so the meaning of its lines is unknown")
    verdicts = run.verdicts
    if study == MALIBU:
        verdicts, plan = _read_malibu(run, plan)
    own = [line if "reads" in line else line | {"reads": published_reads().get(line["id"])} for line in plan["lines"]]
    if unknown := [line["id"] for line in own if line["reads"] is None]:
        raise ConfigError(f"{path} is older than this Parley: its plan does not say what '{unknown[0]}' reads")
    directions, sampled = read_directions(plan["directions"]), plan["readout"] == "sampled"
    try:
        remarks = repeated_remarks(path) if plan["battery"].get("talk_sha256") else None
        lines = card_lines(verdicts, own, directions, sampled=sampled, remarks=remarks)
    except MissingColumns as error:
        raise ConfigError(f"{path}: {error}") from None
    return Card(
        battery=BatteryRecord.model_validate(plan["battery"]),
        model=_model(run, plan, float(began)),
        data=_data(run),
        run=RunRecord(
            file=path.name,
            sha256=_verdicts_sha256(run),
            seed=run.seed or 0,
            calls=run.calls,
            tokens_in=int(tokens_in),
            tokens_out=int(tokens_out),
            cost=run.cost,
            parley=run.versions.get("parley-autogen", "a checkout"),
        ),
        lines=lines,
    )


def write_card_files(card: Card, stem: Path, runs: Path) -> None:
    """Write a card as a page, Markdown, a picture for a slide, and JSON, which is written last.

    Args:
        card: The card.
        stem: The files' path without a suffix.
        runs: The folder of its run file.
    """
    from parley.analysis.card.page import card_markdown, card_page
    from parley.analysis.card.picture import card_picture

    Path(f"{stem}.html").write_text(card_page(card, str(runs)), "utf-8")
    Path(f"{stem}.md").write_text(card_markdown(card), "utf-8")
    # A name such as "qwen2.5" has a dot: the picture's suffix must not replace what follows it.
    save(card_picture(card), Path(f"{stem}.svg"), ("svg", "png"), SIMULATED if card.model.simulated else "")
    write_card(card, f"{stem}.json")


def _read_malibu(run: LoadedRun, plan: Mapping[str, Any]) -> tuple[pd.DataFrame, dict[str, Any]]:
    """The silent ballots of a MALIBU run as a card's, with a card's plan: both ask about labels and flaws.

    Such a card has fewer lines, and the plan's hash instead of a battery's: it is compared with runs of the same plan.
    """
    verdicts, assigned = run.verdicts, dict.fromkeys(("flaw", "dose", "flawed", "ask", "author"), "")
    if len(run.models) != 1 or "stage" not in verdicts:
        raise ConfigError(f"{run.path}: only a run of one model with silent ballots has a card (see parley report)")
    verdicts = verdicts[(verdicts["stage"].astype(str) == "silent") & (verdicts["control"].astype(str) == "")]
    verdicts = verdicts.assign(**{name: value for name, value in assigned.items() if name not in verdicts})
    phase, dose = verdicts["phase"].astype(int), pd.to_numeric(verdicts["dose"], errors="coerce")
    parts = {"labels": phase == 1, "graded": phase == 3, "graded-pairs": (phase == 4) & (dose == SEVERE)}
    verdicts = verdicts.assign(part=np.select(list(parts.values()), list(parts), ""), dose=dose.fillna(0).astype(int))
    if not len(verdicts := verdicts[verdicts["part"] != ""]):
        raise ConfigError(f"{run.path} has no silent ballots on labels or graded responses")
    battery, (model,) = load_battery(), run.models
    lines = [line.model_dump() for line in battery.line]
    return verdicts, {
        "battery": {
            "name": MALIBU,
            "version": str(plan.get("version")),
            "sha256": run.analysis_plan.sha256 if run.analysis_plan else "",
            "size": "default",
        },
        "family": battery.family_of(model).id,
        "readout": "sampled" if (verdicts["text"].astype(str) == SAMPLED_TEXT).any() else "expected",
        "lines": [line | {"margin": plan["margin"]} if line["group"] == "labels" else line for line in lines],
        "directions": plan.get("directions", {}),
    }


def _model(run: LoadedRun, plan: dict[str, Any] | Any, began: float) -> ModelRecord:
    from parley.agents.models.weights import weights_about  # it loads what reads weights

    (name,) = run.models
    quantisation, template = weights_about(name)
    low, _, high = str(run.verdicts["scale"].iloc[0]).partition("-")
    weights = [digest for source, digest in run.sources.items() if source.startswith("weights of ")]
    return ModelRecord(
        name=name,
        family=plan["family"],
        revision=f"sha256:{weights[0]}" if weights else None,
        date=datetime.fromtimestamp(began, UTC).date().isoformat(),
        quantisation=quantisation,
        template_sha256=template,
        readout=plan["readout"],
        scale=(int(low), int(high)),
        simulated=provider_of(name).simulated,
    )


def _data(run: LoadedRun) -> DataRecord:
    suite, digest = next((name, digest) for name, digest in run.sources.items() if name.startswith("suite "))
    wordings = next(digest for name, digest in run.sources.items() if name.startswith("wordings "))
    return DataRecord(suite=suite.removeprefix("suite "), suite_sha256=digest, wordings_sha256=wordings)


def _verdicts_sha256(run: LoadedRun) -> str:
    """The hash of all verdicts: unlike the file's, it stays the same when somebody writes a note into the run."""
    rows = (
        run.verdicts[["unit", "metric", "value"]].astype({"unit": str, "metric": str}).sort_values(["unit", "metric"])
    )
    return hashlib.sha256(rows.to_csv(index=False, float_format="%.12g").encode()).hexdigest()
