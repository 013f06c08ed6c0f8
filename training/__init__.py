"""RLDF's training: supervised fine-tuning on low-bias statements, a reward model on pairs, reinforcement learning.

    parley train all --config rldf.toml

`config` has the settings, `pairs` and `prompts` read the data, `base_model` loads the model to train; `stages` has the
stages, on TRL's trainers, and runs them in order; `stage_run` trains one and `folders` stores its result; `evaluation`
has the metrics. Needs the extra `training`; `config`, `pairs` and `prompts` can be imported without
it.
"""
