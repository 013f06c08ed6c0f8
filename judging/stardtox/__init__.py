"""The study `stardtox` (Tahmasebi et al., 2025): sentences are completed, criticised by evaluators, and revised.

    parley run stardtox --data prompts.jsonl --sets moderate,high --report

Read `study` first (what is completed), then `team` (who evaluates), `methods` (the loop and its rivals) and `report`;
`detox` is the same team on any text.
"""
