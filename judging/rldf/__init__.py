"""RLDF (Cheng et al., 2024): people debate a topic, a referee scores the bias of what they say.

    parley run rldf --bias age --topics 20 --report

Read `study` first (the debates), then `roles` (who debates), `silent_referee` and `referee` (its two ways of scoring);
`report` puts together `debates`, `second_referee` and `ablation`. `check` asks whether a model can referee, `answers`
and `rlaif` are the studies beside the debates, and `preferences` audits the datasets made from them.
"""
