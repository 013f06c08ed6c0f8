"""MALIBU (Mirza et al. 2025): do judges score the same answer differently under another author's label?

    parley run malibu --model sim/judge

To run it: `study` (what is asked of whom), `config`, then its designs: `silent` (ballots without a word), `talk` and
`panel` (debates), `paper` (as printed), and `analysis_plan`, which is stored before the first call.

To report it, in the order in which the numbers are made: `ballots` and `panel_data` (verdicts as frames), `score_table`
(differences within an answer), `contrasts` (what is compared, with estimates), `decisions` (why a contrast has its
verdict), `scores` and `pairs` (tables and figures), `words` (sentences), `report`.
"""
