"""The study `rubric`: several judges score any texts by a rubric, such as RLDF's BS, CE and LS (Cheng et al., 2024).

    parley run rubric --data answers.jsonl --report

Read `rubrics` first (metrics and prompts), then `study` and `report`.
"""
