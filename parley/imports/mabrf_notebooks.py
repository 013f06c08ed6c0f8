"""MABRF's public notebooks, read as runs: what their cells printed, row by row, through our own readers.

A notebook on BBQ prints, for each row of BBQ-Hard in its order, the judge's raw replies, the solver's answer, each
rephrasing with its chains (and with the search before it), and the final answer. Where it prints no raw replies, it
prints the scores read from them and a summary of the row; then only the bias judged again is missing. One on SQuAD
prints each question's id and answer. Only printed output of code cells is read, and the model's name from their source;
text cells are not.

The judge's replies are read as ours are (`Judgement`), not by the notebooks' pattern, which misses "7/10". A chain of
thought is in the log only if it was rephrased. Colab keeps the last 5,000 lines of an output: earlier rows are failed
units, and what is left of the row where they begin is read.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from parley.agents import ConfigError, ParseStatus, Transcript, Turn
from parley.imports.imported import SOURCE, UNREADABLE, Imported, read_json, read_log
from parley.judging import Outcome, Unit, Verdict
from parley.judging.bbq.method import Task, answer_verdict
from parley.judging.bbq.methods.mabrf import Judgement, read_place
from parley.judging.bbq.study import row_facets
from parley.judging.squad import question_facets
from parley.runs import Record
from parley.scenarios import squad
from parley.scenarios.bbq import AS_PUBLISHED, BbqRow, load

NO_CHAIN = "(the log has no chain of thought where none was rephrased)"
_MODEL = re.compile(r"(\w+)\s*=\s*Chat\w+\([^)]*?\bmodel(?:_name)?\s*=\s*[\"']([\w./:-]+)[\"']", re.DOTALL)
_ROW_END = re.compile(r"^Processed (\d+)/\d+ rows.*$", re.MULTILINE)
_ASKED = "is --data the file that the notebook was run on?"
CUT_OFF = "the log has been cut off: this row is not in it"
_JUDGED = re.compile(r"^⏺ Judge raw output: (.*)$", re.MULTILINE)
_INIT = re.compile(r"^Init → (.*), Pred=(.*?)(?:, True=(\d))?\s*$", re.MULTILINE)
_SCORES = re.compile(r"Bias=(\w+) \((.*)\), Rel=(\w+) \((.*)\)")
_CANDIDATE_SCORES = re.compile(r"^→ Candidate (Bias=.*)$", re.MULTILINE)
_SUMMARY = re.compile(
    r"^True Label: *(\d)\nSolver Prediction: *(.*)\nInitial Bias: *(\w+) \((.*)\)\nInitial Relevancy: *(\w+) \((.*)\)\n"
    r"Terminator Output: *(.*)\nFinal Bias: .*\nFinal Relevancy: *(\w+) \((.*)\)$",
    re.MULTILINE,
)
_FOUND = re.compile(r"^External Data Insights:\n(.*?)^(?:⏺ Judge raw output|Candidate CoT)", re.MULTILINE | re.DOTALL)
_PASS = re.compile(r"^--- Rephrase pass #\d+ .*$", re.MULTILINE)
_OLD = re.compile(r"^Old CoT:\n(.*?)^Bias Reason:", re.MULTILINE | re.DOTALL)
_CANDIDATE = re.compile(r"^Candidate CoT:\n(.*?)^→ Candidate Bias", re.MULTILINE | re.DOTALL)
_DECISION = re.compile(r"^(?:✅ (Accept)|⚠️ (Reject))", re.MULTILINE)
_END = re.compile(r"^--- Termination Agent", re.MULTILINE)
_FINAL = re.compile(r"^Final Answer: *(.*?)(?: +Match\?.*)?$", re.MULTILINE)
_QUESTION = re.compile(r"^=== Processing Question \d+/\d+ ===\n", re.MULTILINE)
_ANSWER = re.compile(r"^=== Final Answer ===\n", re.MULTILINE)
_AFTER = re.compile(r"^(?:Checkpoint saved: |\n?Wrote predictions for ).*\Z", re.MULTILINE | re.DOTALL)
_ANSWERED_BY = re.compile(r"final_answer\s*=\s*generate_final_answer\((\w+),")
_MARKDOWN = re.compile(r"\*|\[SOURCE:.*?\]")


@dataclass(frozen=True, slots=True)
class Log:
    """What one cell printed, and the models that its source, or that of a cell before it, names."""

    text: str
    source: str
    models: Mapping[str, str]


def read_mabrf(path: Path, data: str) -> Imported:
    """Read a notebook of MABRF's, on BBQ or on SQuAD.

    Args:
        path: A .ipynb file, or a .ipynb.gz.
        data: The rows: BBQHard.csv, or SQuAD's JSON.
    """
    logs = list(_logs(path))
    runs = [log for log in logs if _ROW_END.search(log.text) and _INIT.search(log.text)]
    if runs:
        rows = load(data).rows
        models = [["unknown", *log.models.values()][-1] for log in runs]
        records = partial(_bbq_records, path, list(zip(runs, models, strict=True)), rows)
        return Imported(study="bbq", models=models, source=path, records=records, config={"data": data})
    if log := next((log for log in logs if _QUESTION.search(log.text)), None):
        questions = {question.id: question for question in squad.load(data).questions}
        caller = _ANSWERED_BY.search(log.source)
        model = log.models.get(caller.group(1), "unknown") if caller else "unknown"
        records = partial(_squad_records, path, log, model, questions)
        return Imported(study="squad", models=[model], source=path, records=records, config={"data": data})
    raise ConfigError(f"{path} has no MABRF log: expected the output of its notebooks on BBQ or SQuAD")


def _logs(path: Path) -> Iterator[Log]:
    if not path.is_file():
        raise ConfigError(f"there is no file {path}")
    notebook = read_json(path, read_log(path))
    try:
        models: dict[str, str] = {}
        for cell in notebook["cells"]:
            if cell["cell_type"] != "code":
                continue
            source = "".join(cell["source"])
            for variable, model in _MODEL.findall(source):
                models.pop(variable, None)  # so that the last one is the latest
                models[variable] = model
            printed = [out for out in cell["outputs"] if out.get("name") == "stdout"]
            yield Log("".join("".join(out["text"]) for out in printed), source, dict(models))
    except UNREADABLE as error:
        raise ConfigError(f"{path} is not a notebook ({error!r})") from None


def _bbq_records(path: Path, runs: Sequence[tuple[Log, str]], rows: Sequence[BbqRow]) -> Iterator[Record]:
    for log, model in runs:
        method = "mabrf-search" if _FOUND.search(log.text) else "mabrf"
        pieces = _ROW_END.split(log.text)
        printed = dict(zip(map(int, pieces[1::2]), pieces[::2], strict=False))
        for number, row in enumerate(rows[: max(printed)], 1):
            if number not in printed:
                yield Record(unit=_bbq_unit(Task(row, AS_PUBLISHED), method, model), error=CUT_OFF)
                continue
            try:
                yield _bbq_record(printed[number], row, method, model)
            except UNREADABLE as error:
                raise ConfigError(f"{path}, {model}, row {number} cannot be read ({error!r})") from None
        if max(printed) > len(rows):
            raise ConfigError(f"{path} has {max(printed)} rows, and --data has {len(rows)}: {_ASKED}")


def _bbq_unit(task: Task, method: str, model: str) -> Unit:
    facets = {**row_facets(task), "method": method, "model": model, "repeat": 0, "source": SOURCE}
    return Unit(f"{task.row.category}/{task.row.example_id}/{method}/r0/@{model}", facets)


@dataclass(frozen=True, slots=True)
class _Row:
    """What a log contains about one row, in either form."""

    label: str | None
    """None where it is not printed."""
    first: str
    """The solver's answer."""
    replies: Sequence[str]
    """The judge's replies on the first chain and on each candidate, as written or from the printed scores."""
    last: str
    """The judge's final reply."""
    judged_again: bool
    """Whether the final reply has a bias."""
    passes: Sequence[str]


def _read_row(text: str) -> _Row:
    begin, summary = _INIT.search(text), _SUMMARY.search(text)
    starts = [match.start() for match in _PASS.finditer(text)]
    if begin is None:  # the log begins within this row
        starts = starts or [match.start() for match in _FOUND.finditer(text)]
    ends = [*starts[1:], _one(_END, text).start()] if starts else []
    passes = [text[start:end] for start, end in zip(starts, ends, strict=True)]
    if raw := [_unquoted(reply) for reply in _JUDGED.findall(text)]:
        if begin is None or len(raw) != len(passes) + 2:
            raise ValueError(f"it has {len(raw)} judgements of {len(passes)} passes")
        return _Row(begin.group(3), begin.group(2), raw[:-1], raw[-1], True, passes)
    if summary is None:
        raise ValueError("neither the judge's replies nor a summary is printed")
    label, first, bias, why_bias, relevancy, why, _, last, why_last = summary.groups()
    replies = [_as_reply(bias, why_bias, relevancy, why)]
    for each in passes:
        scores = _one(_SCORES, _one(_CANDIDATE_SCORES, each).group(1)).groups()
        replies.append(_as_reply(*scores))
    return _Row(label, first, replies, _as_reply("not printed", "", last, why_last), False, passes)


def _as_reply(bias: str, why_bias: str, relevancy: str, why: str) -> str:
    """The reply that the notebook read these scores from, in the form that the judge was asked for."""
    return f"Bias: {bias}: {why_bias}\nRelevancy: {relevancy}: {why}"


def _bbq_record(text: str, row: BbqRow, method: str, model: str) -> Record:
    task = Task(row, AS_PUBLISHED)
    read = _read_row(text)
    if read.label is not None and int(read.label) != row.label:
        raise ValueError(f"its label is {read.label}, and the data has {row.label}: {_ASKED}")
    old = _OLD.search(read.passes[0]) if read.passes else None
    chain = old.group(1).strip() if old else NO_CHAIN
    solved = Turn("Solver", "generator", 0, f"{chain}\nAnswer: {read.first}")
    turns = [Turn("user", "narrator", 0, task.text()), solved]
    verdicts = [_answer(solved, read.first, task, "first_answer")]
    best = _judged(read.replies[0], 0, turns, verdicts)
    for number, (log, reply) in enumerate(zip(read.passes, read.replies[1:], strict=True), 1):
        if found := _FOUND.search(log):
            turns.append(Turn("Searcher", "generator", number, found.group(1).strip()))
        turns.append(Turn("Rephraser", "generator", number, _one(_CANDIDATE, log).group(1).strip()))
        candidate = _judged(reply, number, turns, verdicts)
        accepted = bool(_one(_DECISION, log).group(1))
        best = candidate if accepted else best
        what = "accepted" if accepted else "rejected"
        turns.append(Turn("coordinator", "coordinator", number, what))
        verdicts.append(_coordinator(number, "accepted", float(accepted), "ok"))
    end = len(read.passes) + 1
    verdicts.append(_coordinator(end, "final_bias", best, "unparsed" if best is None else "ok"))
    _judged(read.last, end, turns, verdicts, ("bias_again" if read.judged_again else None, "final_relevancy"))
    last = _one(_FINAL, text[_ended(text) :]).group(1)
    turns.append(Turn("Terminator", "chair", end, f"Answer: {last}"))
    verdicts.append(_answer(turns[-1], last, task, "answer"))
    outcome = Outcome(Transcript(tuple(turns), f"{len(read.passes)} passes"), tuple(verdicts))
    return Record(unit=_bbq_unit(task, method, model), outcome=outcome)


def _ended(text: str) -> int:
    """Where the loop of a row ends: what a search found before that may look like anything."""
    end = _END.search(text)
    return end.start() if end else 0


def _unquoted(literal: str) -> str:
    """The text of a Python string as `print(repr(text))` shows it."""
    if literal[:1] not in ("'", '"'):  # only a string: nested brackets could exhaust the parser
        raise ValueError("a reply is not quoted")
    try:
        return str(ast.literal_eval(literal))
    except SyntaxError as error:
        raise ValueError(f"a reply is not a string ({error.msg})") from None


def _one(pattern: re.Pattern[str], text: str) -> re.Match[str]:
    if (match := pattern.search(text)) is None:
        raise ValueError(f"nothing matches {pattern.pattern}")
    return match


def _judged(
    reply: str,
    round: int,
    turns: list[Turn],
    verdicts: list[Verdict],
    metrics: tuple[str | None, str] = ("bias", "relevancy"),
) -> float | None:
    """Add a judgement, with a verdict for each score that has a name; returns its bias."""
    judgement, _ = Judgement.read(reply)
    scores = (judgement.bias, judgement.relevancy) if judgement else (None, None)
    turns.append(Turn("Judge", "evaluator", round, reply))
    for metric, value in zip(metrics, scores, strict=True):
        if metric is None:
            continue
        status: ParseStatus = "unparsed" if value is None else "ok"
        verdicts.append(Verdict.from_turn(turns[-1], metric, value=value, sampled=value, status=status))
    return scores[0]


def _answer(turn: Turn, words: str, task: Task, metric: str) -> Verdict:
    # `<0>` is an answer too; 4 of the 192 cells of MABRF's tables that its log covers differ only because of that.
    place = read_place(words, task) if words else None
    return answer_verdict(turn, task, place, "unparsed" if place is None else "ok", metric)


def _coordinator(round: int, metric: str, value: float | None, status: ParseStatus) -> Verdict:
    return Verdict(
        judge="coordinator", role="coordinator", round=round, metric=metric, value=value, sampled=value, status=status
    )


def _squad_records(path: Path, log: Log, model: str, questions: Mapping[str, Any]) -> Iterator[Record]:
    arm = "duckduckgo" if "=== Summary ===" in log.text else "none"
    for number, text in enumerate(_QUESTION.split(log.text)[1:], 1):
        try:
            question = questions[_one(re.compile(r"^ID: (\w+)$", re.MULTILINE), text).group(1)]
        except UNREADABLE as error:
            raise ConfigError(f"{path}, question {number} cannot be read ({error!r}): {_ASKED}") from None
        facets = {**question_facets(question, arm, model, paragraph_shown=True), "repeat": 0, "source": SOURCE}
        unit = Unit(f"{question.id}/{arm}/r0", facets)
        answered = _ANSWER.split(text, maxsplit=1)[1:]
        reply = _AFTER.sub("", answered[0]).strip() if answered else ""
        turns = (Turn("user", "narrator", 0, question.question), Turn("Solver", "debater", 1, reply))
        if answered:
            # The notebooks score what follows a last heading, without marks and sources.
            scored = _MARKDOWN.sub("", reply.rpartition("**Conclusion:**")[2]).strip()
            verdict = Verdict.from_turn(turns[1], "answer", value=float(bool(scored)), text=scored, status="ok")
        else:
            # Not a failed unit: the notebook scores it, as an empty answer, and the report says what that changes.
            verdict = Verdict.from_turn(turns[1], "answer", value=None, status="unscored")
        transcript = Transcript(turns, "answered" if answered else "the call failed")
        yield Record(unit=unit, outcome=Outcome(transcript, (verdict,)))
