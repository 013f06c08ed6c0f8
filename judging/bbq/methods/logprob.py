"""`logprob`: the option with the highest probability, from the log-probabilities of the reply's own tokens.

Models lean to a letter whatever stands there, so every option is shown once in every place, and the probabilities are
averaged. They are kept as verdicts (metric `probability`, subject: the answer's published place).
"""

from __future__ import annotations

from typing import ClassVar

from parley.agents import ParseStatus, Transcript
from parley.judging.bbq.method import BbqContext, Choice, PromptedMethod, Solved, Task
from parley.judging.bbq.methods.default import PROMPT
from parley.judging.study import Verdict
from parley.scenarios.bbq import LETTERS


class LogProb(PromptedMethod):
    name: ClassVar[str] = "logprob"
    needs_logprobs = True
    used = (PROMPT,)
    rounds = 3

    async def solve(self, task: Task, context: BbqContext) -> Solved:
        weights = dict.fromkeys(task.order, 0.0)
        turns = []
        read = 0
        for by in range(3):
            shown = task.rotated(by)
            said = await context.converse(
                PROMPT(question=shown.text(), format=Choice.FORMAT), [Choice], readout="expected"
            )
            turns += [turn._replace(round=by + 1 if turn.round else 0) for turn in said.turns]
            turn = said.spoken()[-1]
            found = [turn.expected.get(f"answer={letter}") for letter in LETTERS]
            if turn.verdict is None or None in found:
                continue
            read += 1
            for place, weight in zip(shown.order, found, strict=True):
                weights[place] += weight or 0.0
        last = turns[-1]
        status: ParseStatus = "ok" if read == 3 else last.parse_status if last.parse_status == "refused" else "unparsed"
        verdicts = tuple(
            Verdict(last.speaker, last.role, 3, "probability", str(place), weights[place] / read)
            for place in sorted(weights)
            if read == 3
        )
        best = [place for place in weights if weights[place] == max(weights.values())]
        sure = read == 3 and len(best) == 1
        choice = task.order.index(best[0]) if sure else None
        transcript = Transcript(tuple(turns), "every option stood in every place")
        return Solved(transcript, choice, status if sure or read < 3 else "unparsed", verdicts)
