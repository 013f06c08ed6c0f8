"""`logprob`: the option with the highest probability, from the log-probabilities of the reply's own tokens.

Models prefer a letter whatever option it stands for, so every option is shown once in every place, and the
probabilities are averaged. They are stored as verdicts (metric `probability`, subject: the answer's published place).
"""

from __future__ import annotations

from typing import ClassVar

from parley.agents import Transcript
from parley.judging.bbq.method import BbqContext, Choice, PromptedMethod, Solved, Task
from parley.judging.bbq.methods.default import PROMPT
from parley.judging.study import Verdict
from parley.scenarios.bbq import LETTERS


class LogProb(PromptedMethod):
    name: ClassVar[str] = "logprob"
    needs_logprobs = True
    used = (PROMPT,)

    async def solve(self, task: Task, context: BbqContext) -> Solved:
        weights = dict.fromkeys(task.order, 0.0)
        turns = []
        readable = 0
        for by in range(3):
            rotated = task.rotated(by)
            prompt = PROMPT(question=rotated.text(), format=Choice.FORMAT)
            transcript = await context.converse(prompt, [Choice], readout="expected")
            turns += [turn._replace(round=by + 1 if turn.round else 0) for turn in transcript.turns]
            turn = transcript.spoken()[-1]
            probabilities = [turn.expected.get(f"answer={letter}") for letter in LETTERS]
            if turn.verdict is None or None in probabilities:
                continue
            readable += 1
            for place, probability in zip(rotated.order, probabilities, strict=True):
                weights[place] += probability or 0.0
        last, complete = turns[-1], readable == 3
        verdicts = tuple(
            Verdict.from_turn(last, "probability", subject=str(place), value=weights[place] / 3, status="ok")
            for place in sorted(weights)
            if complete
        )
        best = [place for place in weights if weights[place] == max(weights.values())]
        transcript = Transcript(tuple(turns), "every option was shown in every place")
        if complete and len(best) == 1:
            return Solved(transcript, task.order.index(best[0]), "ok", verdicts)
        why = last.parse_status if not complete and last.parse_status in ("refused", "cut") else "unparsed"
        return Solved(transcript, None, why, verdicts)
