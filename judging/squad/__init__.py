"""The study `squad`: factual questions, with or without a search agent (MABRF on SQuAD 2.0).

    parley run squad --data dev-v2.0.json --search none,folder:articles --report

From the MABRF paper's table 4. Read `study` first (the questions), then `scores` (how answers are marked) and `report`
(whether search helps; our cells beside the paper's).
"""
