"""RLDF (Cheng et al., 2024): people debate a topic, a referee scores the bias of what they say.

    parley run rldf --bias age --topics 20 --report

Read `study` first (the debates), then `roles` (the debaters), `silent_referee` and `referee` (the two ways of
scoring); `report` combines `debates`, `second_referee` and `ablation`. `check` asks whether a model can referee,
`answers` and `rlaif` are the studies beside the debates, and `preferences` audits the datasets made from them.
"""
