"""The study `bbq` (Parrish et al., 2022): does a model answer questions about two people by stereotype?

    parley run bbq --data path/to/BBQ/data --method default,cot --limit 220 --report

Read `study` first (the questions), then `method` (the interface of a method) and `methods`. `scores` has the
benchmark's scores; `report` combines `leaderboard`, `comparisons` and `iterations`. `mabrf` is Roy and Rehman's loop
(2025): its methods and their part of the report.
"""
