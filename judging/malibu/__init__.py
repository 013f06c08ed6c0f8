"""MALIBU (Mirza et al. 2025): do judges score the same answer differently under another author's label?

    parley run malibu --model sim/judge

To run it: `plan` (settings, what varies, and the analysis that is stored before the first call), `study` (its designs),
and what these ask: `silent` (ballots without a word) and `panel` (debates).

To report it, in the order in which the numbers are made: `score_table` (verdicts as columns, differences within an
answer), `panel_data` (a score or a preference per unit), `contrasts` (what is compared, with estimates), `decisions`
(why a contrast has its verdict), `scores` and `pairs` (tables and figures), `words` (sentences), `report`.
"""
