"""The study `framing`: whether a model admits its biases (Cheng et al., 2024, figure 1).

    parley run framing --bias age --topics 50 --report

Read `study` first (the questions), then `report` (the comparison of framings).
"""
