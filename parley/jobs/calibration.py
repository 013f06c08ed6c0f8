"""What `parley run toxicity --label FIELD --to FILE` writes: a scorer's thresholds, measured on labelled texts."""

from __future__ import annotations

import hashlib
import math
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from parley.base.errors import ConfigError
from parley.base.text import plural
from parley.jobs.writing import Writer, Written
from parley.judging.toxicity.calibration import Calibration, GroupOfTexts, Range
from parley.judging.toxicity.languages import find_language, language_name
from parley.judging.toxicity.study import ToxicityConfig, ToxicityStudy
from parley.judging.toxicity.swaps import Swaps
from parley.runs import RunFile

if TYPE_CHECKING:
    from parley.analysis.stats.results import Line
    from parley.analysis.toxicity.thresholds import CalibratedGroup

NO_IDENTITY = "none named"
DIGITS = 4
"""Decimals of thresholds, which are rounded to the safe side: fewer misses, fewer false alarms."""
RANGES = ("harmless_below", "toxic_from", "missed", "alarms", "revised", "missed_at", "alarms_at")
FLAGS = ("field", "label", "label_from", "language", "group", "miss_rate", "false_alarm_rate", "at")


def refuse_uncalibrated(study: ToxicityStudy) -> None:
    """Raise `ConfigError` if thresholds cannot be found, before anything is scored."""
    config = study.config
    if config.label is None:
        raise ConfigError("--to writes thresholds, which need labelled texts: name their field with --label")
    if len(config.scorer) > 1:
        raise ConfigError("only one scorer can be calibrated at a time: give --scorer once")
    toxic = [line.given >= config.label_from for line in study.lines.values() if line.given is not None]
    if not toxic:
        raise ConfigError(f"{config.data}: no row has a number in the field '{config.label}'")
    if all(toxic) or not any(toxic):
        kind = "toxic" if all(toxic) else "harmless"
        raise ConfigError(f"all labelled texts are {kind} (by {config.label} >= {config.label_from:g})")


def thresholds(study: ToxicityStudy, run: Path) -> Written:
    """The thresholds of a run's scorer."""
    groups = _groups(study, run)
    calibration = _calibration(study, groups)
    return Written(
        text=calibration.to_toml(),
        remark="For parley detox --calibration.",
        about="\n".join(_lines(calibration, sum(line.given is None for line in study.lines.values()))),
    )


THRESHOLDS = Writer(".toml", thresholds, refuse_uncalibrated)


def _groups(study: ToxicityStudy, run: Path) -> list[CalibratedGroup]:
    import pandas as pd

    from parley.analysis.toxicity.thresholds import calibrate

    config, swaps = study.config, Swaps.load()
    with RunFile.open(run) as file:
        _, rows = file.rows("SELECT unit, value FROM verdicts WHERE metric = 'toxicity'")
    scores = dict(rows)
    labelled = [(item, line) for item, line in study.lines.items() if line.given is not None and item in scores]
    group = config.group or "identity"
    frame = pd.DataFrame(
        {
            "score": pd.Series([scores[item] for item, _ in labelled], dtype=float),
            "toxic": [(line.given or 0) >= config.label_from for _, line in labelled],
            "language": [
                (line.also[0] if config.language else language_name(find_language(line.text)),) for _, line in labelled
            ],
            group: [
                (line.also[-1],) if config.group else swaps.identity_groups(line.text) or (NO_IDENTITY,)
                for _, line in labelled
            ],
        }
    )
    rates = {"miss_rate": config.miss_rate, "false_alarm_rate": config.false_alarm_rate, "at": config.at}
    groups = calibrate(frame, **rates, by=("language", group))
    for threshold in (groups[0].harmless_below, groups[0].toxic_from):
        if math.isnan(threshold.estimate):
            raise ConfigError(f"{config.data}: {threshold.note}")
    return groups


def _calibration(study: ToxicityStudy, groups: Sequence[CalibratedGroup]) -> Calibration:
    config = study.config
    below, alarm = groups[0].harmless_below.estimate, groups[0].toxic_from.estimate
    harmless_below = math.floor(below * 10**DIGITS) / 10**DIGITS
    source = Path(config.data)
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    ((scorer, version),) = study.versions.items()
    return Calibration(
        scorer=scorer,
        version=version,
        command=_command(config),
        texts=f"{source.name}, field {config.field or 'text'}, sha256 {digest}",
        labels=f"toxic: {config.label} >= {config.label_from:g}",
        miss_rate=config.miss_rate,
        false_alarm_rate=config.false_alarm_rate,
        harmless_below=harmless_below,
        toxic_from=max(harmless_below, min(1.0, math.ceil(alarm * 10**DIGITS) / 10**DIGITS)),
        at=config.at,
        group=tuple(_stored(group) for group in groups),
    )


def _command(config: ToxicityConfig) -> str:
    """The command without what does not change the result."""
    given = [(flag, getattr(config, flag)) for flag in FLAGS] + [("scorer", config.scorer[0])]
    words = [word for flag, value in given if value is not None for word in (f"--{flag.replace('_', '-')}", str(value))]
    return shlex.join(["parley", "run", "toxicity", "--data", Path(config.data).name, *words])


def _stored(group: CalibratedGroup) -> GroupOfTexts:
    plain = {name: getattr(group, name) for name in ("by", "name", "toxic", "harmless", "unscored")}
    return GroupOfTexts(**plain, **{name: _range(getattr(group, name)) for name in RANGES})


def _range(line: Line) -> Range:
    ends = (line.estimate, line.low, line.high)
    estimate, low, high = (None if math.isnan(end) else round(end, DIGITS) for end in ends)
    return Range(estimate=estimate, low=low, high=high)


def _lines(calibration: Calibration, unlabelled: int) -> Iterator[str]:
    below = f"{calibration.harmless_below:g}"
    everything = calibration.group[0]
    yield (
        f"Harmless below {below}: this misses {_cell(everything.missed)} of toxic texts, and "
        f"{_cell(everything.alarms)} of the others score higher."
    )
    yield f"Toxic from {calibration.toxic_from:g}: {_cell(everything.revised)} of the others score that high."
    yield f"A threshold of {calibration.at:g} misses {_cell(everything.missed_at)} of toxic texts."
    yield f"{plural(everything.unscored, 'text')} had no score, {unlabelled:,} no label. Brackets: 95% intervals."
    yield f"thresholds of {calibration.scorer}"


def _cell(share: Range) -> str:
    if share.estimate is None or share.low is None or share.high is None:
        return "–"
    return f"{share.estimate:.1%} ({share.low:.1%}–{share.high:.1%})"
