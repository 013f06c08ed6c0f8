"""The study `squad`: factual questions, with or without a search agent (MABRF on SQuAD 2.0).

    parley run squad --data dev-v2.0.json --search none,folder:articles --report

From the MABRF paper's table 4. Read `study` first (what is asked), then `scores` (how an answer is marked) and `report`
(does search help; our cells beside the paper's).
"""
