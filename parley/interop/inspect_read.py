"""Logs of Inspect AI (`.eval`, `.json`, format version 2), read without Inspect itself.

A sample of an epoch becomes a unit, its messages turns, its scores verdicts, the model events the calls. An `.eval`
is a ZIP of JSON files, since 2026 compressed with Zstandard, which Python reads from 3.14 on; before, the small package
zipfile-zstd is needed (`pip install "parley-autogen[inspect]"`).
"""

from __future__ import annotations

import math
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from parley.agents import Call, ConfigError, ParseStatus, PromptMessage, Transcript, Turn
from parley.interop.imported import Imported, facets_of, read_json, read_text, seconds
from parley.judging import Outcome, Unit, Verdict
from parley.judging.study import Facet
from parley.runs import Record

Json = Mapping[str, Any]
GRADES = {"C": 1.0, "P": 0.5, "I": 0.0}
"""Inspect's letters. Its N (no answer) is no 0 here: it has no value, and is counted as unparsed."""
ZSTANDARD = 93


def read_inspect(path: Path) -> Imported:
    if not path.is_file():
        raise ConfigError(f"there is no file {path}")
    if zipfile.is_zipfile(path):
        with _archive(path) as archive:
            names = set(archive.namelist())
            head = next((name for name in ("header.json", "_journal/start.json") if name in names), None)
            header = read_json(path, archive.read(head)) if head else None
        samples = None
    else:
        header = read_json(path, read_text(path))
        samples = header.get("samples") or [] if isinstance(header, dict) else None
    about = header.get("eval") if isinstance(header, dict) else None
    if not isinstance(about, dict) or "task" not in about:
        raise ConfigError(f"{path} is no log of Inspect's")
    model = str(about.get("model", "unknown"))

    def records() -> Iterator[Record]:
        for number, sample in enumerate(_archived(path) if samples is None else samples):
            try:
                yield _record(sample, str(about["task"]), model)
            except (AttributeError, KeyError, TypeError, ValueError) as error:
                raise ConfigError(f"{path}: sample {number + 1} cannot be read ({error!r})") from None

    config = {"inspect": {key: about.get(key) for key in ("task_args", "config", "packages") if about.get(key)}}
    return Imported(f"inspect-{about['task']}", [model], path, records, config)


def _archive(path: Path) -> zipfile.ZipFile:
    with suppress(ModuleNotFoundError):
        import zipfile_zstd  # noqa: F401 - teaches `zipfile` to read Zstandard
    archive = zipfile.ZipFile(path)
    try:
        for one in archive.infolist()[:1]:
            archive.open(one).close()
    except (NotImplementedError, zipfile.BadZipFile):
        archive.close()
        raise ConfigError(f"{path} needs a package to be read: pip install 'parley-autogen[inspect]'") from None
    return archive


def _archived(path: Path) -> Iterator[Json]:
    with _archive(path) as archive:
        for name in archive.namelist():
            if name.startswith("samples/") and name.endswith(".json"):
                yield read_json(path, archive.read(name))


def _record(sample: Json, task: str, model: str) -> Record:
    name, epoch = str(sample["id"]), int(sample.get("epoch", 1))
    own: dict[str, Facet] = {"task": task, "epoch": epoch, "model": model}
    unit = Unit(f"{name}/e{epoch}", {"scenario": name, **facets_of(sample.get("metadata")), **own})
    began, ended = seconds(sample.get("started_at")), seconds(sample.get("completed_at"))
    if error := sample.get("error"):
        return Record(unit, began, ended, error=str(error.get("message", "failed"))[:300])
    calls = _calls(sample)
    turns = tuple(_turn(message, sample, calls) for message in sample["messages"])
    stop = sample["output"]["choices"][0]["stop_reason"] if (sample.get("output") or {}).get("choices") else ""
    verdicts = [one for scorer, score in (sample.get("scores") or {}).items() for one in _verdicts(scorer, score)]
    return Record(unit, began, ended, Outcome(Transcript(turns, str(stop)), tuple(verdicts)))


def _turn(message: Json, sample: Json, calls: Mapping[str, Call]) -> Turn:
    text = _text(message, sample)
    if message["role"] == "assistant":
        made = calls.get(str(message.get("id")))
        return Turn(str(message.get("model") or "assistant"), "debater", 1, text, calls=(made,) if made else ())
    speaker = f"tool {message.get('function') or ''}".strip() if message["role"] == "tool" else str(message["role"])
    return Turn(speaker, "narrator", 0, text)


def _text(message: Json, sample: Json) -> str:
    content = message.get("content") or ""
    parts = [content] if isinstance(content, str) else [_part(one) for one in content]
    for call in message.get("tool_calls") or ():
        parts.append(f"[calls {call.get('function')}({call.get('arguments')})]")
    return _whole("\n".join(part for part in parts if part), sample)


def _part(one: Any) -> str:
    kind = one.get("type")
    if kind == "text":
        return str(one.get("text", ""))
    return f"[reasoning] {one.get('reasoning', '')}" if kind == "reasoning" else f"[{kind}]"


def _whole(text: str, sample: Json) -> str:
    """Long texts stand apart in a log, and are named by their hash."""
    mark = "attachment://"
    if text.startswith(mark):
        return str((sample.get("attachments") or {}).get(text.removeprefix(mark), text))
    return text


def _calls(sample: Json) -> dict[str, Call]:
    """The model calls by the id of the message that they gave."""
    pool = (sample.get("events_data") or {}).get("messages") or []
    found = {}
    for event in sample.get("events") or ():
        if event.get("event") != "model" or not (event.get("output") or {}).get("choices"):
            continue
        output = event["output"]
        reply, usage = output["choices"][0]["message"], output.get("usage") or {}
        asked = event.get("input") or [m for low, high in event.get("input_refs") or () for m in pool[low:high]]
        found[str(reply.get("id"))] = Call(
            model=str(event.get("model", "unknown")),
            prompt=tuple(PromptMessage(str(m["role"]), str(m["role"]), _text(m, sample)) for m in asked),
            reply=_text(reply, sample),
            prompt_tokens=int(usage.get("input_tokens") or 0),
            completion_tokens=int(usage.get("output_tokens") or 0),
            latency=float(output.get("time") or 0.0),
            cost=None,
            cached=event.get("cache") == "read",
            attempts=1 + int(event.get("retries") or 0),
        )
    return found


def _verdicts(scorer: str, score: Json) -> Iterator[Verdict]:
    value, answer = score.get("value"), score.get("answer")
    if isinstance(value, dict):
        several = [(f"{scorer}/{key}", one) for key, one in value.items()]
    elif isinstance(value, list):
        several = [(f"{scorer}/{n}", one) for n, one in enumerate(value)]
    else:
        several = [(scorer, value)]
    for metric, one in several:
        number, status = _number(one)
        text = str(answer) if answer is not None else one if isinstance(one, str) else None
        yield Verdict(
            judge=scorer,
            role="evaluator",
            round=1,
            metric=metric,
            value=number,
            sampled=number,
            text=text,
            status=status,
        )


def _number(value: Any) -> tuple[float | None, ParseStatus]:
    if isinstance(value, str) and value in GRADES:
        return GRADES[value], "ok"
    if value == "N":
        return None, "unparsed"
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None, "ok" if isinstance(value, str) else "unscored"
    return (number, "ok") if math.isfinite(number) else (None, "unscored")
