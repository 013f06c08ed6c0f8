"""MABRF's public notebooks, read as runs: what their cells printed, row by row, through our own readers.

A notebook on BBQ prints, for each row of BBQ-Hard in its order, the judge's raw replies, the solver's answer, each
rephrasing with its chains, and the final answer. One on SQuAD prints each question's id and answer. Only printed output
of code cells is read, and the model's name from their source; text cells are not.

The judge's replies are read as ours are (`Judgement`), not by the notebooks' pattern, which misses "7/10". A chain of
thought is in the log only if it was rephrased.
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
_JUDGED = re.compile(r"^⏺ Judge raw output: (.*)$", re.MULTILINE)
_INIT = re.compile(r"^Init → .*Pred=(.*), True=(\d)\s*$", re.MULTILINE)
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
    runs = [log for log in logs if _ROW_END.search(log.text) and _JUDGED.search(log.text)]
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
    if any(_ROW_END.search(log.text) for log in logs):  # as in the notebook with search
        raise ConfigError(f"{path} cannot be recomputed: its log has none of the judge's raw replies")
    raise ConfigError(f"{path} has no log of MABRF's: expected the output of its notebooks on BBQ or SQuAD")


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
        pieces = _ROW_END.split(log.text)
        for text, number in zip(pieces[::2], pieces[1::2], strict=False):
            where = f"{path}, {model}, row {number}"
            try:
                yield _bbq_record(text, rows[int(number) - 1], model)
            except UNREADABLE as error:
                raise ConfigError(
                    f"{where} cannot be read ({error!r}): is --data the file that it was run on?"
                ) from None


def _bbq_record(text: str, row: BbqRow, model: str) -> Record:
    task = Task(row, AS_PUBLISHED)
    begin = _one(_INIT, text)
    if int(begin.group(2)) != row.label:
        raise ValueError(f"its label is {begin.group(2)}, the data's {row.label}")
    replies = [_unquoted(reply) for reply in _JUDGED.findall(text)]
    starts = [match.start() for match in _PASS.finditer(text)]
    ends = [*starts[1:], _one(_END, text).start()] if starts else []
    passes = [text[start:end] for start, end in zip(starts, ends, strict=True)]
    if len(replies) != len(passes) + 2:
        raise ValueError(f"{len(replies)} judgements of {len(passes)} passes")
    chain = _one(_OLD, passes[0]).group(1).strip() if passes else NO_CHAIN
    solved = Turn("Solver", "generator", 0, f"{chain}\nAnswer: {begin.group(1)}")
    turns = [Turn("user", "narrator", 0, task.text()), solved]
    verdicts = [_answer(solved, begin.group(1), task, "first_answer")]
    best = _judged(replies[0], 0, turns, verdicts)
    for number, (log, reply) in enumerate(zip(passes, replies[1:-1], strict=True), 1):
        turns.append(Turn("Rephraser", "generator", number, _one(_CANDIDATE, log).group(1).strip()))
        candidate = _judged(reply, number, turns, verdicts)
        accepted = bool(_one(_DECISION, log).group(1))
        best = candidate if accepted else best
        what = "accepted" if accepted else "rejected"
        turns.append(Turn("coordinator", "coordinator", number, what))
        verdicts.append(_coordinator(number, "accepted", float(accepted), "ok"))
    end = len(passes) + 1
    verdicts.append(_coordinator(end, "final_bias", best, "unparsed" if best is None else "ok"))
    _judged(replies[-1], end, turns, verdicts, ("bias_again", "final_relevancy"))
    last = _one(_FINAL, text).group(1)
    turns.append(Turn("Terminator", "chair", end, f"Answer: {last}"))
    verdicts.append(_answer(turns[-1], last, task, "answer"))
    facets = {**row_facets(task), "method": "mabrf", "model": model, "repeat": 0, "source": SOURCE}
    unit = Unit(f"{row.category}/{row.example_id}/mabrf/r0/@{model}", facets)
    outcome = Outcome(Transcript(tuple(turns), f"{len(passes)} passes"), tuple(verdicts))
    return Record(unit=unit, started_at=0.0, finished_at=0.0, outcome=outcome)


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
    metrics: tuple[str, str] = ("bias", "relevancy"),
) -> float | None:
    """Add a judgement; returns its bias."""
    judgement, _ = Judgement.read(reply)
    scores = (judgement.bias, judgement.relevancy) if judgement else (None, None)
    turns.append(Turn("Judge", "evaluator", round, reply))
    for metric, value in zip(metrics, scores, strict=True):
        status: ParseStatus = "unparsed" if value is None else "ok"
        verdicts.append(Verdict.from_turn(turns[-1], metric, value=value, sampled=value, status=status))
    return scores[0]


def _answer(turn: Turn, words: str, task: Task, metric: str) -> Verdict:
    # `<0>` is an answer too; 4 of the 192 cells of MABRF's tables that its log covers differ for that alone.
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
            raise ConfigError(f"{path}, question {number} cannot be read ({error!r}): is --data its file?") from None
        facets = {**question_facets(question, arm, model, paragraph_shown=True), "repeat": 0, "source": SOURCE}
        unit = Unit(f"{question.id}/{arm}/r0", facets)
        answered = _ANSWER.split(text, maxsplit=1)[1:]
        if not answered:
            yield Record(unit=unit, started_at=0.0, finished_at=0.0, error="the call failed; stored as an empty answer")
            continue
        reply = _AFTER.sub("", answered[0]).strip()
        # The notebooks score what follows a last heading, without marks and sources.
        scored = _MARKDOWN.sub("", reply.rpartition("**Conclusion:**")[2]).strip()
        turns = (Turn("user", "narrator", 0, question.question), Turn("Solver", "debater", 1, reply))
        verdict = Verdict.from_turn(turns[1], "answer", value=float(bool(scored)), text=scored, status="ok")
        yield Record(
            unit=unit, started_at=0.0, finished_at=0.0, outcome=Outcome(Transcript(turns, "answered"), (verdict,))
        )
