"""RLDF's training: supervised tuning on low-bias statements, a reward model on pairs, reinforcement learning.

    parley train all --config rldf.toml

`config` says what can be set, `pairs` reads datasets, `base` finds the model to begin with; `sft`, `reward` and `rl`
are the stages, on TRL's trainers; `quality` looks at a reward model; `stage` keeps what is half written apart.
Needs `pip install "parley-autogen[training]"`. Only `config` and `pairs` may be imported without it.
"""
