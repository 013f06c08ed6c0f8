"""Reinforcement learning: reward − β·KL(policy ‖ SFT), by RLOO (the default), GRPO, DPO (on the pairs), or PPO.

RLOO has the paper's objective with the mean of an answer's siblings in place of a critic. PPO with a critic, as in the
paper, was last in trl 1.12.0 (see `ppo`). Answers are sampled: the published script turns sampling off, which leaves
nothing to learn from.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from parley.agents import ConfigError
from parley.training import device
from parley.training.base import load_model
from parley.training.callbacks import KlStop, SampleProbe
from parley.training.pairs import shuffled
from parley.training.scorer import RewardScorer, answers
from parley.training.trainer import Course, put_away, table, train, watchers

PPO_TRL = "1.12.0"


def check_algorithm(name: str) -> None:
    """Before anything is trained: whether the installed trl has it."""
    if name == "ppo":
        try:
            import trl.experimental.ppo  # noqa: F401
        except ModuleNotFoundError:
            raise ConfigError(
                f"trl dropped PPO in 1.13: pip install trl=={PPO_TRL} for it, or keep algorithm = 'rloo', which has "
                "the same objective without a critic"
            ) from None


class Reward:
    """What an answer is worth: the reward model's score, less a penalty where it does not come to an end."""

    __name__ = "reward_model"

    def __init__(self, scorer: RewardScorer, missing_end: float) -> None:
        self.scorer, self.missing_end = scorer, missing_end

    def __call__(self, prompts: Any, completions: Any, completion_ids: Any, **more: Any) -> list[float]:
        return self.of([one[-1]["content"] for one in prompts], completion_ids)

    def of(self, prompts: Sequence[str], said: Sequence[Sequence[int]]) -> list[float]:
        chat = self.scorer.chat
        end = chat.tokenizer.eos_token_id
        # An answer that was cut off is scored as if it ended there: pairs all end, and nothing else was ever learnt.
        whole = [[*chat.prompt(one), *ids] for one, ids in zip(prompts, said, strict=True)]
        scores = self.scorer.tokens([ids if ids[-1] == end else [*ids[: chat.longest - 1], end] for ids in whole])
        return [score - (0.0 if end in ids else self.missing_end) for score, ids in zip(scores, said, strict=True)]


class Look:
    """Answers to held-out prompts, the policy's against those the SFT model gave at the same draws of chance."""

    def __init__(self, course: Course, reward: Reward) -> None:
        part = course.config.rl
        self.course, self.reward = course, reward
        self.prompts = list(dict.fromkeys(course.topics.probes().values()))[: part.probe_prompts]
        self.first: list[float] = []

    def __call__(self, policy: Any) -> Mapping[str, float]:
        config = self.course.config
        said = answers(
            policy,
            self.course.chat,
            self.prompts,
            max_tokens=config.rl.max_tokens,
            temperature=config.rl.temperature,
            seed=config.seed,
            replay=config.rl.replay,
        )
        scores = self.reward.of(self.prompts, said)
        unfinished = sum(self.course.chat.tokenizer.eos_token_id not in one for one in said) / len(said)
        self.first = self.first or scores
        wins = [1.0 if new > old else 0.5 if new == old else 0.0 for new, old in zip(scores, self.first, strict=True)]
        return {
            "win_rate": sum(wins) / len(wins),
            "probe_reward": sum(scores) / len(scores),
            "probe_score": sum(scores) / len(scores) + self.reward.missing_end * unfinished,
            "probe_unfinished": unfinished,
            "probe_length": sum(map(len, said)) / len(said),
        }


def train_rl(course: Course) -> None:
    config, part, chat = course.config, course.config.rl, course.chat
    check_algorithm(part.algorithm)
    stage = course.stage("rl")
    begins = str(course.folder("sft"))
    scorer = RewardScorer.load(course.folder("reward"), chat, device=device.device(), dtype=device.dtype(config))
    model = load_model(begins, chat.tokenizer)
    course.need_room(model)
    if part.algorithm == "ppo":
        shutil.rmtree(stage.steps, ignore_errors=True)  # its trainer cannot go on from a checkpoint: it starts over
    resume = stage.begin()
    log, callbacks = watchers(stage, resume)
    reward = Reward(scorer, part.missing_end)
    look = Look(course, reward)
    if resume is not None:
        look(load_model(begins, chat.tokenizer).to(device.device()))  # what the SFT model says, to win against
    stop = KlStop(part.max_kl or float("inf"), by_force=part.algorithm == "ppo")
    callbacks += [stop, SampleProbe(log, part.probe_every, look)]
    if part.algorithm == "ppo":
        from parley.training.ppo import train_ppo

        trainer, seconds = train_ppo(course, model, begins, callbacks)
    else:
        make = {"rloo": _online, "grpo": _online, "dpo": _dpo}[part.algorithm]
        trainer = make(course, stage.steps, model, reward, callbacks)
        seconds = train(trainer, resume)
    facts = {
        "algorithm": part.algorithm,
        "prompts": len(course.prompts()),
        "steps": trainer.state.global_step,
        "seconds": round(seconds, 1),
        "stopped_at_kl": stop.reached or None,
        "held_out": look(trainer.accelerator.unwrap_model(getattr(trainer.model, "policy", trainer.model))),
        "held_out_before": {"probe_reward": sum(look.first) / len(look.first)},
    }
    put_away(course, stage, trainer, facts, policy=getattr(trainer.model, "policy", None))


def _online(course: Course, steps: Path, model: Any, reward: Reward, callbacks: list[Any]) -> Any:
    """RLOO or GRPO: the policy answers, the reward model scores, siblings are compared."""
    import trl

    config, part = course.config, course.config.rl
    name = part.algorithm.upper()
    shape = device.batches(part.batch * part.samples, config, "rl.batch × rl.samples")
    args = getattr(trl, f"{name}Config")(
        **device.arguments(config, part, steps),
        **shape,
        num_generations=part.samples,
        steps_per_generation=shape["gradient_accumulation_steps"] * part.ahead,
        max_completion_length=part.max_tokens,
        temperature=part.temperature,
        beta=part.beta,
    )
    trainer = getattr(trl, f"{name}Trainer")(
        model=model,
        reward_funcs=[reward],
        args=args,
        train_dataset=table([{"prompt": course.chat.messages(one)} for one in course.prompts()]),
        processing_class=_padded_left(course.chat.tokenizer),
        peft_config=device.adapters(config),
        callbacks=callbacks,
    )
    if part.replay:
        write_by_replay(trainer)
    return trainer


def write_by_replay(trainer: Any) -> None:
    """Answers are written with one recorded step, where the model and the device can."""
    from parley.agents.models.cuda_graphs import cuda_graph_decoding

    policy = trainer.accelerator.unwrap_model(trainer.model)
    plain = policy.generate

    def generate(*given: Any, **named: Any) -> Any:
        if named.get("generation_config") is not trainer.generation_config:
            return plain(*given, **named)
        with cuda_graph_decoding(policy, named["input_ids"].shape[1] + trainer.max_completion_length) as fast:
            return plain(*given, **named, **fast)

    policy.generate = generate
    trainer.generation_config.disable_compile = False


def _dpo(course: Course, steps: Path, model: Any, reward: Reward, callbacks: list[Any]) -> Any:
    """DPO learns from the pairs themselves; the reward model only watches."""
    from trl import DPOConfig, DPOTrainer

    config, part, chat = course.config, course.config.rl, course.chat
    rows = [
        {"prompt": chat.rendered(pair.prompt), "chosen": pair.chosen.text, "rejected": pair.rejected.text}
        for pair in shuffled(course.pairs.train, config.seed)
    ]
    return DPOTrainer(
        model=model,
        args=DPOConfig(
            **device.arguments(config, part, steps),
            **device.batches(part.batch, config, "rl.batch"),
            max_length=config.max_length,
            beta=part.beta,
        ),
        train_dataset=table(rows),
        processing_class=chat.tokenizer,
        peft_config=device.adapters(config),
        callbacks=callbacks,
    )


def _padded_left(tokenizer: Any) -> Any:
    tokenizer.padding_side = "left"
    return tokenizer
