"""What judges said about the texts that people could have labelled, for the section in which labels correct them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from operator import itemgetter
from pathlib import Path

import pandas as pd

from parley.agents import ConfigError, ParleyError
from parley.analysis.reporting.corrected import corrected_lines, corrected_section
from parley.analysis.reporting.judged_texts import ALL, PREFERRED, JudgedTexts, in_words, reach, reach_sentences
from parley.analysis.reporting.report import MAX_SENTENCES, Report
from parley.analysis.reporting.verdicts import cluster_of, uncategorised
from parley.analysis.stats.prediction_powered import MIN_CLUSTERS
from parley.analysis.stats.results import Line
from parley.reports.loading import LoadedRun, load_run
from parley.runs import RunFile, frames
from parley.runs.studies import arms_of

CHOICE = {"A": 1.0, "tie": 0.5, "B": 0.0}
OPTION = "answer"
"""A choice between options says what is right, not how good a text is: there is no judge to correct."""
CORRECTS_NOTHING = "These labels correct no figure of the report; they show how far raters agree."
IDENTITIES = ("identity", "identity_a")
NOT_IDENTITIES = (
    "They cannot correct differences between identities: raters do not see whose text it is, so it has one label under "
    "all of them."
)
TOPICS = ("topic", "prompt", "item")
"""Facets that are clusters where units have no base, template or paragraph."""


def with_labels(report: Report, runs: Sequence[LoadedRun], arms: Sequence[str]) -> Report:
    """The report with people's labels next to the judge's estimates; unchanged if there are none.

    Args:
        report: The study's own.
        runs: The runs that it is about, with distinct names.
        arms: The facets that the study compares texts by.
    """
    try:
        read = read_labels(runs, arms)
    except ParleyError as error:
        return replace(report, cautions=(*report.cautions, f"The labels could not be used: {error}"))
    section = corrected_section(corrected_lines(read), read)
    if not section.tables:
        return report
    # After what invalidates results: people's word on a question counts more than a judge's.
    first = sum(sentence in report.cautions for sentence in report.words)
    words = (*report.words[:first], *section.words, *report.words[first:])
    return replace(
        report,
        words=words[: max(MAX_SENTENCES, first + len(section.words))],
        tables=(*report.tables, *section.tables),
        forests=(*report.forests, *section.forests),
        beside=(*report.beside, *section.words[:1]),
    )


def has_labels(runs: Sequence[LoadedRun]) -> bool:
    """Whether any run has labels, or has some that cannot be read."""
    try:
        return any(len(frames.labels(run.path)) for run in runs)
    except ParleyError:
        return True


def run_lines(path: Path, width: float | None) -> list[Line]:
    """A run's corrected estimates that have an interval, the report's first one first.

    Args:
        path: The run file.
        width: The wanted width; None: half of what each is now.
    """
    run = load_run(path)
    lines = corrected_lines(read_labels([run], arms_of(run.study)), width)
    if not lines:
        raise ConfigError(f"{path} has no labels of a random draw: label some in `parley view`")
    with_interval = [line for line in lines if line.bounded]
    if not with_interval:
        raise ConfigError(f"{path}: {lines[0].note}; label more texts first")
    return with_interval


def what_labels_correct(path: Path, drawn: pd.DataFrame, asked: Collection[tuple[str, str]]) -> list[str]:
    """Sentences on what the labels of a random draw would correct, and what they cannot.

    Args:
        path: The run file.
        drawn: What was drawn, and from what (see `parley.runs.frames.drawn`).
        asked: The subjects and questions of the drawn items.
    """
    try:
        run = load_run(path)
    except ConfigError:  # conversations without verdicts
        return [CORRECTS_NOTHING]
    labels = pd.DataFrame(sorted(asked), columns=["subject", "question"])
    arms = _arms([run], arms_of(run.study))
    judged = _judged(run, "", labels, drawn, arms)
    if judged.empty:
        return [CORRECTS_NOTHING]
    texts = JudgedTexts(labels=labels, drawn=drawn, judged=judged, arms=arms, cluster=judged.attrs["cluster"])
    shown = drawn.loc[drawn["position"].notna(), "text_id"]
    sentences = list(reach_sentences(texts, shown))
    if not any(arm.reached >= MIN_CLUSTERS for arm in reach(texts, shown)):
        sentences += _fewer_of_a_phase(run, texts)
    if any(run.verdicts[name].nunique() > 1 for name in IDENTITIES if name in run.verdicts):
        sentences.append(NOT_IDENTITIES)
    return sentences


def _fewer_of_a_phase(run: LoadedRun, texts: JudgedTexts) -> Iterator[str]:
    """How few items correct something if they are drawn from one phase; nothing where they are already."""
    if "phase" not in run.verdicts:
        return
    phases = run.verdicts.drop_duplicates("unit").set_index("unit")["phase"]
    of_drawn, of_judged = (frame["unit"].map(phases) for frame in (texts.drawn, texts.judged))
    alone = [
        (arm.items, phase, arm)
        for phase in of_judged.unique()
        for arm in reach(
            replace(texts, drawn=texts.drawn[of_drawn == phase], judged=texts.judged[of_judged == phase]), ()
        )
        if arm.items
    ]
    if alone and len({phase for _, phase, _ in alone}) > 1:
        items, phase, arm = min(alone, key=itemgetter(0))
        yield f"Of phase {phase} alone (--where f.phase={phase}), about {items} items correct {in_words([arm])}."


def labels_table(lines: Sequence[Line]) -> pd.DataFrame:
    """By estimate: its labels, its width, and how many more labels the wanted width takes.

    Args:
        lines: Lines with an interval.
    """
    more = [line.also["labels_wanted"] - line.n for line in lines]  # NaN where labels of all texts are not enough
    return pd.DataFrame(
        {
            "metric": [line.measure for line in lines],
            "of": [line.label for line in lines],
            "raters": [line.about["raters"] for line in lines],
            "labels": [line.n for line in lines],
            "texts": [int(line.also["texts"]) for line in lines],
            "width": [line.high - line.low for line in lines],
            "wanted": [line.also["wanted"] for line in lines],
            "more_labels": pd.Series([None if count != count else max(0, int(count)) for count in more], dtype=object),
            "width_with_all": [line.also["width_with_all"] for line in lines],
        }
    )


def read_labels(runs: Sequence[LoadedRun], arms: Sequence[str]) -> JudgedTexts:
    """The labels of the runs.

    Args:
        runs: The runs; if there are several, units begin with the run's number.
        arms: The facets that the study compares texts by.
    """
    names = _arms(runs, arms)
    parts, cluster = [], "cluster"
    for number, run in enumerate(runs):
        prefix = f"{number}:" if len(runs) > 1 else ""
        labels, drawn = frames.labels(run.path), frames.drawn(run.path)
        # Who draws from all texts, and then from fewer, labels the second draw: it alone says what labels stand for.
        drawn = drawn[drawn["draw"].isin(labels["draw"])]
        judged = _judged(run, prefix, labels, drawn, names) if len(labels) else pd.DataFrame()
        cluster = str(judged.attrs.get("cluster", cluster))
        # Where the study's measure is the mean of its scores, and all of them are better when they are higher.
        if len(judged) and run.measures and not run.measures[0].metric and run.measures[0].better:
            labels, judged = _with_mean(labels, judged, names)
        parts.append([frame.assign(draw=prefix + frame["draw"].astype(str)) for frame in (labels, drawn)] + [judged])
    labels, drawn, judged = (pd.concat(frames_of, ignore_index=True) for frames_of in zip(*parts, strict=True))
    return JudgedTexts(labels=labels, drawn=drawn, judged=judged, arms=names if len(judged) else (), cluster=cluster)


def _arms(runs: Sequence[LoadedRun], arms: Sequence[str]) -> tuple[str, ...]:
    """The study's arms, and the judges' models where there are several."""
    several = len({str(model) for run in runs for model in run.verdicts["model"].unique()}) > 1
    return (*arms, *(["model"] if several else []))


def _with_mean(labels: pd.DataFrame, judged: pd.DataFrame, arms: Sequence[str]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The labels and the judges' scores, with the mean over the metrics of a rubric first, where it has several."""
    scores = judged[judged["metric"] != PREFERRED]
    answers = labels[labels["question"].isin(scores["metric"])]
    if scores["metric"].nunique() < 2:
        return labels, judged
    numbers = ("value", "judge_value")
    keys = ["draw", "unit", "rater", "subject"]
    means = answers.groupby(keys, sort=False, as_index=False).agg(
        dict.fromkeys(numbers, _mean_of_all)
        | {name: "first" for name in labels.columns if name not in (*keys, *numbers, "question")}
    )
    over_metrics = scores.groupby(["unit", "subject"], sort=False, as_index=False).agg(
        {"judged": "mean", **dict.fromkeys(("text_id", "cluster", *arms), "first")}
    )
    both = pd.concat([over_metrics.assign(metric=ALL), judged], ignore_index=True)
    return pd.concat([labels, means.assign(question=ALL)], ignore_index=True), both


def _mean_of_all(column: pd.Series) -> float:
    """The mean; none for an item with unanswered questions."""
    return float(column.mean(skipna=False))


def _judged(
    run: LoadedRun, prefix: str, labels: pd.DataFrame, drawn: pd.DataFrame, arms: Sequence[str]
) -> pd.DataFrame:
    """The judges' mean score of every text that could be drawn, by metric: one row per unit and subject."""
    texts = drawn[drawn["probability"].notna()].drop_duplicates("unit").set_index("unit")["text_id"]
    texts.index = prefix + texts.index.astype(str)
    verdicts = run.verdicts[run.verdicts["unit"].isin(texts.index) & run.verdicts["metric"].isin(labels["question"])]
    verdicts = uncategorised(verdicts[verdicts["metric"] != OPTION])
    if verdicts.empty:
        return pd.DataFrame()
    choice = (verdicts["metric"] == PREFERRED) & verdicts["value"].isna()
    verdicts = verdicts.assign(value=verdicts["value"].where(~choice, verdicts["text"].map(CHOICE)))
    verdicts = _shown_rounds(run, prefix, verdicts)
    # A text alone has no subject; the verdicts on it may name one all the same.
    subjects = set(labels["subject"]) - {""}
    verdicts = verdicts.assign(subject=verdicts["subject"].where(verdicts["subject"].isin(subjects), ""))
    clusters = _clusters(verdicts)
    keys = ["metric", "unit", "subject"]
    judged = verdicts.assign(cluster=clusters).dropna(subset=["value"]).groupby(keys, sort=False)
    means = judged.agg(judged=("value", "mean"), row=("value", lambda column: column.index[0])).reset_index()
    facets = verdicts.loc[means["row"]]
    means = means.drop(columns="row").assign(
        text_id=means["unit"].map(texts).to_numpy(),
        cluster=clusters.loc[facets.index].to_numpy(),
        **{name: _parts(facets, name) for name in arms},
    )
    means.attrs["cluster"] = str(clusters.name)
    return means


def _shown_rounds(run: LoadedRun, prefix: str, verdicts: pd.DataFrame) -> pd.DataFrame:
    """The verdicts on what raters see: of the round that is shown, by default the last; the chair's, where it spoke."""
    by_unit = verdicts.groupby(["unit", "metric"])["round"]
    wanted = by_unit.transform("max")
    varied = verdicts.loc[(by_unit.transform("nunique") > 1) & (verdicts["metric"] != PREFERRED), "unit"].unique()
    if len(varied):
        # It loads the studies, and AutoGen with them: a report without labels must not wait for that.
        from parley.reports.labels.items import LabelItems

        with RunFile.open(run.path) as file:
            items = LabelItems(file)
            shown = {unit: items.of(str(unit).removeprefix(prefix)).round for unit in varied}
        rounds = verdicts["unit"].map(shown)
        wanted = wanted.where(rounds.isna() | (verdicts["metric"] == PREFERRED), rounds)
    verdicts = verdicts[verdicts["round"] == wanted]
    chair = verdicts["role"] == "chair"
    spoke = chair.groupby([verdicts["unit"], verdicts["metric"]]).transform("any")
    return verdicts[chair | ~spoke]


def _clusters(verdicts: pd.DataFrame) -> pd.Series:
    clusters = cluster_of(verdicts)
    other = next((name for name in TOPICS if name in verdicts and verdicts[name].notna().all()), None)
    return verdicts[other].astype(str) if clusters.name == "unit" and other else clusters


def _parts(rows: pd.DataFrame, facet: str) -> list[str]:
    """What a facet adds to the name of each row's arm; one that is empty reads "no flaw"."""
    values = rows[facet] if facet in rows else [None] * len(rows)
    return [
        f"no {facet}" if pd.isna(value) or value == "" else f"round {value:g}" if facet == "round" else str(value)
        for value in values
    ]
