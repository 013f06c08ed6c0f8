"""The study `bbq` (Parrish et al., 2022): does a model answer questions about two people by stereotype?

    parley run bbq --data path/to/BBQ/data --method default,cot --limit 220 --report

Read `study` first (what is asked), then `method` (what a method of answering is) and `methods`; `scores` has the
benchmark's own scores, `leaderboard`, `comparisons` and `iterations` what `report` puts together. `mabrf` is Roy and
Rehman's loop (2025): its methods, and what the report adds for them.
"""
