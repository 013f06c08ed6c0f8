"""MALIBU (Mirza et al. 2025): whether judges score the same answer differently under another author's label.

    parley run malibu --model sim/judge

To run it: `plan` (settings, units, and the analysis plan that is stored before the first call), `study` (designs),
`silent` (silent ballots) and `panel` (debates). To report it, in the order of computation: `score_table` (verdicts as
columns, differences within an answer), `panel_data` (a score or a preference per unit), `contrasts` (estimates),
`decisions` (verdicts on contrasts), `scores` and `pairs` (tables and figures), `words` (sentences), `report`.
"""
