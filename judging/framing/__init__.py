"""The study `framing`: does a model admit its biases (Cheng et al., 2024, figure 1)?

    parley run framing --bias age --topics 50 --report

Read `study` first (what is asked), then `report` (the framings compared).
"""
