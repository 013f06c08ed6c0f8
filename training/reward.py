"""The reward model: the last token's hidden state through a linear layer to one number, trained to rank pairs.

Loss −log σ(R(x, y_good) − R(x, y_bad)), as in the paper; TRL's RewardTrainer has it. Pairs are tokenized here (see
`chat`), since the trainer would end them as the template does, and drop those that are too long.
"""

from __future__ import annotations

from parley.agents import ParleyError
from parley.training import device
from parley.training.evaluation.reward_quality import look_at
from parley.training.pairs import shuffled
from parley.training.trainer import Course, logged, put_away, table, train, watchers


def train_reward(course: Course) -> None:
    from transformers import AutoModelForSequenceClassification, set_seed
    from trl import RewardConfig, RewardTrainer

    config, part, chat = course.config, course.config.reward, course.chat
    stage = course.stage("reward")
    begins = str(course.folder("sft"))
    set_seed(config.seed)  # the new layer is drawn at random
    model = AutoModelForSequenceClassification.from_pretrained(begins, num_labels=1, dtype="float32")
    model.config.pad_token_id = chat.tokenizer.pad_token_id
    course.need_room(model)
    resume = stage.begin()
    _, callbacks = watchers(stage, resume)
    pairs = shuffled(course.pairs.train, config.seed)
    trainer = RewardTrainer(
        model=model,
        args=RewardConfig(
            **device.arguments(config, part, stage.steps),
            **device.batches(part.batch, config, "reward.batch"),
            max_length=config.max_length,
        ),
        train_dataset=table([chat.pair(pair) for pair in pairs]),
        processing_class=chat.tokenizer,
        peft_config=device.adapters(config, scores=True),
        callbacks=callbacks,
    )
    seconds = train(trainer, resume)
    margins = logged(trainer, "margin")
    if margins and max(map(abs, margins)) == 0:
        raise ParleyError("the reward model gives both sides of every pair the same score: it has learnt nothing")
    facts = {
        "pairs": len(pairs),
        "cut": sum(chat.is_cut(pair.prompt, side.text) for pair in pairs for side in (pair.chosen, pair.rejected)),
        "steps": trainer.state.global_step,
        "seconds": round(seconds, 1),
        "begins_from": "sft",
    }
    put_away(course, stage, trainer, facts)
    if device.is_main():
        look_at(course)
