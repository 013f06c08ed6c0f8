"""The study `squad`: factual questions, with or without a search agent (MABRF on SQuAD 2.0).

    parley run squad --data dev-v2.0.json --search none,folder:articles --report

`study` asks, `scores` marks an answer, `report` compares the arms, `published` has the paper's table.
"""

from parley.judging.squad.study import SquadStudy

__all__ = ["SquadStudy"]
