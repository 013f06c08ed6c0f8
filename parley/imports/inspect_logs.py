"""Logs of Inspect AI (`.eval`, `.json`, format version 2), read without Inspect itself: it would bring eighty packages.

A sample of an epoch becomes a unit, its messages become turns, its scores verdicts, its model events calls. An `.eval`
is a ZIP of JSON files, since 2026 compressed with Zstandard. Python reads that from 3.14 on; before, the small package
zipfile-zstd is needed (`pip install "parley-autogen[inspect]"`).
"""

from __future__ import annotations

import math
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from parley.agents import Call, ConfigError, ParseStatus, PromptMessage, Transcript, Turn
from parley.imports.imported import (
    UNREADABLE,
    Imported,
    duration,
    facets_of,
    read_json,
    read_log,
    seconds,
    whole_number,
)
from parley.judging import Outcome, Unit, Verdict
from parley.judging.study import FacetValue
from parley.runs import Record

Json = Mapping[str, Any]
MEBIBYTE = 2**20
MAX_MEMBER = 64 * MEBIBYTE
"""Bytes of the largest sample that is unpacked: parsed, JSON takes twenty times its size in memory."""
MAX_UNPACKED, MAX_RATIO = 256 * MEBIBYTE, 100
"""An archive may unpack to this many bytes, or to this many times its size if that is more."""
MAX_PROMPT_MESSAGES = 500_000
"""Maximum messages in all prompts of a sample: stored as ranges, a small sample may expand to billions."""
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, 93)
"""How Inspect compresses; 93 is Zstandard."""
STEP = 4096
"""Bytes to unpack at a time. `zipfile` compares with the stated size only after a step, which may be far larger."""
GRADES = {"C": 1.0, "P": 0.5, "I": 0.0}
"""The values of Inspect's letters. N (no answer) does not become 0: it has no value and counts as unparsed."""


def read_inspect(path: Path) -> Imported:
    """Read a log of Inspect AI's.

    Args:
        path: A .eval or .json log.
    """
    if not path.is_file():
        raise ConfigError(f"there is no file {path}")
    samples: list[Any] | None = None
    if zipfile.is_zipfile(path):
        with _archive(path) as archive:
            names = set(archive.namelist())
            member = next((name for name in ("header.json", "_journal/start.json") if name in names), None)
            header = read_json(path, _unpack(path, archive, member)) if member else None
    else:
        header = read_json(path, read_log(path))
        samples = header.get("samples") or [] if isinstance(header, dict) else None
        if not isinstance(samples, list | None):
            raise ConfigError(f"{path}: its samples are not a list")
    spec = header.get("eval") if isinstance(header, dict) else None
    if not isinstance(spec, dict) or "task" not in spec:
        raise ConfigError(f"{path} is not an Inspect log")
    model = str(spec.get("model", "unknown"))

    def records() -> Iterator[Record]:
        for number, sample in enumerate(_archived_samples(path) if samples is None else samples, 1):
            try:
                yield _record(sample, str(spec["task"]), model)
            except UNREADABLE as error:
                raise ConfigError(f"{path}: sample {number} cannot be read ({error!r})") from None

    config = {"inspect": {key: spec.get(key) for key in ("task_args", "config", "packages") if spec.get(key)}}
    return Imported(study=f"inspect-{spec['task']}", models=[model], source=path, records=records, config=config)


@contextmanager
def _archive(path: Path) -> Iterator[zipfile.ZipFile]:
    with suppress(ModuleNotFoundError):
        import zipfile_zstd  # noqa: F401 - teaches `zipfile` to read Zstandard
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except NotImplementedError:
        raise ConfigError(f"reading {path} needs a package: pip install 'parley-autogen[inspect]'") from None
    except ConfigError:
        raise
    except OSError as error:
        raise ConfigError(f"{path} is damaged or truncated ({error.strerror or error})") from None
    except Exception as error:  # whatever zipfile and its decompressors raise: BadZipFile, RuntimeError, EOFError, …
        encrypted = "encrypted" in str(error)
        reason = "is encrypted" if encrypted else f"is damaged or truncated ({error or type(error).__name__})"
        raise ConfigError(f"{path} {reason}") from None


def _archived_samples(path: Path) -> Iterator[Json]:
    left = max(MAX_UNPACKED, MAX_RATIO * path.stat().st_size)
    with _archive(path) as archive:
        for name in archive.namelist():
            if name.startswith("samples/") and name.endswith(".json"):
                text = _unpack(path, archive, name)
                left -= len(text)
                if left < 0:
                    size = f"{MAX_UNPACKED // MEBIBYTE} MiB and {MAX_RATIO} times its size"
                    raise ConfigError(f"{path} unpacks to more than {size}; {_TRUSTED}")
                yield read_json(path, text)


_TRUSTED = "if you trust it, write it as JSON and import that: inspect log dump FILE > log.json"


def _unpack(path: Path, archive: zipfile.ZipFile, name: str) -> bytes:
    """A member of the archive, unless it is too large to be read."""
    member = archive.getinfo(name)
    if member.file_size > MAX_MEMBER:
        raise ConfigError(
            f"{path}: {name} has {member.file_size // MEBIBYTE:,} MiB unpacked, more than the "
            f"{MAX_MEMBER // MEBIBYTE} MiB that are read; {_TRUSTED}"
        )
    if member.compress_type not in METHODS:
        raise ConfigError(f"{path}: {name} is compressed in a way that Inspect does not use")
    try:
        with archive.open(member) as file:
            return b"".join(iter(partial(file.read, STEP), b""))
    except NotImplementedError:  # Zstandard without the package that reads it
        raise
    except Exception as error:  # each method of compression has errors of its own
        raise ConfigError(f"{path}: {name} cannot be unpacked ({error})") from None


def _record(sample: Json, task: str, model: str) -> Record:
    name, epoch = str(sample["id"]), whole_number(sample.get("epoch", 1))
    own: dict[str, FacetValue] = {"task": task, "epoch": epoch, "model": model}
    unit = Unit(f"{name}/e{epoch}", {"scenario": name, **facets_of(sample.get("metadata")), **own})
    started, finished = seconds(sample.get("started_at")), seconds(sample.get("completed_at"))
    if error := sample.get("error"):
        message = str(error.get("message", "failed") if isinstance(error, dict) else error)[:300]
        return Record(unit=unit, started_at=started, finished_at=finished, error=message)
    calls = _calls(sample)
    turns = tuple(_turn(message, sample, calls) for message in sample["messages"])
    stop = sample["output"]["choices"][0]["stop_reason"] if (sample.get("output") or {}).get("choices") else ""
    scores = (sample.get("scores") or {}).items()
    verdicts = tuple(verdict for scorer, score in scores for verdict in _verdicts(scorer, score))
    outcome = Outcome(Transcript(turns, str(stop)), verdicts)
    return Record(unit=unit, started_at=started, finished_at=finished, outcome=outcome)


def _turn(message: Json, sample: Json, calls: Mapping[str, Call]) -> Turn:
    text = _text(message, sample)
    if message["role"] == "assistant":
        call = calls.get(str(message.get("id")))
        return Turn(str(message.get("model") or "assistant"), "debater", 1, text, calls=(call,) if call else ())
    speaker = f"tool {message.get('function') or ''}".strip() if message["role"] == "tool" else str(message["role"])
    return Turn(speaker, "narrator", 0, text)


def _text(message: Json, sample: Json) -> str:
    content = message.get("content") or ""
    parts = [content] if isinstance(content, str) else [_part(part) for part in content]
    for call in message.get("tool_calls") or ():
        parts.append(f"[calls {call.get('function')}({call.get('arguments')})]")
    return _attachment("\n".join(part for part in parts if part), sample)


def _part(part: Any) -> str:
    kind = part.get("type")
    if kind == "text":
        return str(part.get("text", ""))
    return f"[reasoning] {part.get('reasoning', '')}" if kind == "reasoning" else f"[{kind}]"


def _attachment(text: str, sample: Json) -> str:
    """The text, or the attachment that it refers to: Inspect stores long texts apart, by their hash."""
    prefix = "attachment://"
    if text.startswith(prefix):
        return str((sample.get("attachments") or {}).get(text.removeprefix(prefix), text))
    return text


def _calls(sample: Json) -> dict[str, Call]:
    """The model calls, by the id of the message they returned."""
    pool = (sample.get("events_data") or {}).get("messages") or []
    left = MAX_PROMPT_MESSAGES
    calls = {}
    for event in sample.get("events") or ():
        if event.get("event") != "model" or not (event.get("output") or {}).get("choices"):
            continue
        output = event["output"]
        reply, usage = output["choices"][0]["message"], output.get("usage") or {}
        prompt = event.get("input") or _referenced(event.get("input_refs") or (), pool, left)
        left -= len(prompt)
        calls[str(reply.get("id"))] = Call(
            model=str(event.get("model", "unknown")),
            prompt=tuple(PromptMessage(str(m["role"]), str(m["role"]), _text(m, sample)) for m in prompt),
            reply=_text(reply, sample),
            prompt_tokens=whole_number(usage.get("input_tokens")),
            completion_tokens=whole_number(usage.get("output_tokens")),
            latency=duration(output.get("time")),
            cost=None,
            cached=event.get("cache") == "read",
            attempts=1 + whole_number(event.get("retries")),
        )
    return calls


def _referenced(ranges: Sequence[Any], pool: Sequence[Any], limit: int) -> list[Any]:
    """The messages of a prompt, which is stored as ranges of the sample's messages."""
    messages: list[Any] = []
    for low, high in ranges:
        messages += pool[low:high]
        if len(messages) > limit:
            raise ValueError(f"it has prompts of more than {MAX_PROMPT_MESSAGES:,} messages")
    return messages


def _verdicts(scorer: str, score: Json) -> Iterator[Verdict]:
    value, answer = score.get("value"), score.get("answer")
    if isinstance(value, dict):
        values = [(f"{scorer}/{key}", item) for key, item in value.items()]
    elif isinstance(value, list):
        values = [(f"{scorer}/{n}", item) for n, item in enumerate(value)]
    else:
        values = [(scorer, value)]
    for metric, item in values:
        number, status = _number(item)
        yield Verdict(
            judge=scorer,
            role="evaluator",
            round=1,
            metric=metric,
            value=number,
            sampled=number,
            text=str(answer) if answer is not None else item if isinstance(item, str) else None,
            status=status,
        )


def _number(value: Any) -> tuple[float | None, ParseStatus]:
    if isinstance(value, str) and value in GRADES:
        return GRADES[value], "ok"
    if value == "N":
        return None, "unparsed"
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None, "ok" if isinstance(value, str) else "unscored"
    return (number, "ok") if math.isfinite(number) else (None, "unscored")
