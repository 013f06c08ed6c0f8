"""The study `stardtox` (Tahmasebi et al., 2025): sentences are completed, criticised by evaluators, and revised.

    parley run stardtox --data prompts.jsonl --sets moderate,high --report

Read `study` first (the task), then `team` (the evaluators), `methods` (the loop and its baselines) and `report`;
`detox` runs the same team on any text.
"""
