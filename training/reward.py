"""The reward model: the SFT model's last hidden state through a linear layer to one number, trained to rank pairs.

The loss is −log σ(R(x, y_good) − R(x, y_bad)), as in the paper; TRL's RewardTrainer has it. Pairs are tokenized here
(see `tokenization`): the trainer would end answers as the chat template does, and drop pairs that are too long.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from parley.base.errors import ParleyError
from parley.base.text import number_text
from parley.training.config import RewardSettings
from parley.training.sft import SFT
from parley.training.stages import Facts, Stage

if TYPE_CHECKING:
    from parley.training.context import TrainingContext
    from parley.training.stage_run import StageRun


def _summary(facts: Facts) -> list[str]:
    return [*facts["verdict"], f"ECE {number_text(facts['ece'])}"]


def train_reward(context: TrainingContext, settings: RewardSettings, run: StageRun) -> Facts:
    """Trains the reward model from the SFT model."""
    from trl import RewardConfig, RewardTrainer

    from parley.training.adapters import new_reward_model
    from parley.training.stage_run import to_dataset

    config, chat = context.config, context.chat
    pairs = list(context.pairs.train)
    random.Random(config.seed).shuffle(pairs)
    trainer = RewardTrainer(
        model=run.start(new_reward_model(context.finished_folder("sft"), context.base, chat.tokenizer)),
        args=RewardConfig(**run.arguments(), max_length=config.max_length),
        train_dataset=to_dataset([chat.pair(pair) for pair in pairs]),
        **run.parts(),
    )
    run.train(trainer)
    margins = [entry["margin"] for entry in trainer.state.log_history if "margin" in entry]
    if margins and not any(margins):
        raise ParleyError("the reward model gives both sides of every pair the same score: it has learnt nothing")
    texts = [(pair.prompt, side.text) for pair in pairs for side in (pair.chosen, pair.rejected)]
    return {"pairs": len(pairs), "cut": sum(chat.is_truncated(*each) for each in texts)}


REWARD = Stage(
    name="reward",
    help="train the reward model on pairs, and assess it on held-out ones",
    train=train_reward,
    summary=_summary,
    needs=(SFT,),
    policy=False,
)
