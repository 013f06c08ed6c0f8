"""The reward model: the last token's hidden state through a linear layer to one number, trained to rank pairs.

Loss −log σ(R(x, y_good) − R(x, y_bad)), as in the paper; TRL's RewardTrainer has it. Pairs are tokenized here (see
`tokenization`): the trainer would end answers as the chat template does, and drop pairs that are too long.
"""

from __future__ import annotations

from parley.base.errors import ParleyError
from parley.training import device
from parley.training.adapters import new_reward_model
from parley.training.context import TrainingContext
from parley.training.evaluation.reward_quality import assess_reward_model
from parley.training.pairs import shuffled
from parley.training.trainer import logged_values, run_trainer, save_model, stage_callbacks, to_dataset


def train_reward(context: TrainingContext) -> None:
    """Trains the reward model from the SFT model, and assesses it on held-out pairs."""
    from transformers import set_seed
    from trl import RewardConfig, RewardTrainer

    config, settings, chat = context.config, context.config.reward, context.chat
    stage = context.stage("reward")
    sft_folder = context.finished_folder("sft")
    set_seed(config.seed)  # the new head is drawn at random
    model = new_reward_model(sft_folder, context.base, chat.tokenizer)
    context.require_disk_space(model)
    checkpoint = stage.begin()
    _, callbacks = stage_callbacks(context, stage, checkpoint)
    pairs = shuffled(context.pairs.train, config.seed)
    set_seed(config.seed)  # and so are adapters
    trainer = RewardTrainer(
        model=model,
        args=RewardConfig(
            **device.training_arguments(config, settings, stage.checkpoints),
            **device.batch_arguments(settings.batch_size, config, "reward.batch_size"),
            max_length=config.max_length,
        ),
        train_dataset=to_dataset([chat.pair(pair) for pair in pairs]),
        processing_class=chat.tokenizer,
        peft_config=device.lora_config(config, reward_model=True),
        callbacks=callbacks,
    )
    seconds = run_trainer(trainer, checkpoint)
    margins = logged_values(trainer, "margin")
    if margins and max(map(abs, margins)) == 0:
        raise ParleyError("the reward model gives both sides of every pair the same score: it has learnt nothing")
    facts = {
        "pairs": len(pairs),
        "cut": sum(
            chat.is_truncated(pair.prompt, side.text) for pair in pairs for side in (pair.chosen, pair.rejected)
        ),
        "steps": trainer.state.global_step,
        "seconds": round(seconds, 1),
    }
    save_model(context, stage, trainer, facts, earlier=sft_folder)
    if device.is_main():
        assess_reward_model(context)
