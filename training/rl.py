"""Reinforcement learning: reward − β·KL(policy ‖ SFT), by RLOO (the default) or PPO.

RLOO has the paper's objective, with the mean reward of a prompt's other completions in place of a critic. PPO with a
critic, as in the paper, was last in trl 1.12.0. Completions are sampled: the published script turns sampling off, and
then all completions of a prompt are equal and there is nothing to learn from.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from parley.base.errors import ConfigError
from parley.base.text import number_text, plural
from parley.training.config import RlSettings
from parley.training.reward import REWARD
from parley.training.sft import SFT
from parley.training.stages import Facts, Stage

if TYPE_CHECKING:
    from parley.training.context import TrainingContext
    from parley.training.stage_run import StageRun

PPO_TRL = "1.12.0"


def check_algorithm(settings: RlSettings) -> None:
    """ConfigError if the installed trl does not have the algorithm."""
    if settings.algorithm == "ppo":
        try:
            import trl.experimental.ppo  # noqa: F401
        except ModuleNotFoundError:
            raise ConfigError(
                f"trl dropped PPO in 1.13: pip install trl=={PPO_TRL}, or use rl.algorithm = 'rloo', which has the "
                "same objective without a critic"
            ) from None


def _summary(facts: Facts) -> list[str]:
    stopped = f"; stopped at a KL of {facts['stopped_at_kl']:.1f} nats" if facts["stopped_at_kl"] else ""
    before, after = (number_text(facts[f"reward_{when}"]) for when in ("before", "after"))
    updates = plural(facts["steps"], "update")
    return [f"{facts['algorithm']}, {updates}; reward of the sampled answers {before} → {after}{stopped}"]


def train_rl(context: TrainingContext, settings: RlSettings, run: StageRun) -> Facts:
    """Trains the policy from the SFT model, with the config's algorithm.

    Raises:
        WeakReward: The reward model has learnt nothing to train with.
    """
    from parley.training import rl_trainers
    from parley.training.adapters import load_policy
    from parley.training.callbacks import KlLimit, read_log

    rl_trainers.refuse_weak_reward(context)
    resumable = settings.algorithm != "ppo"
    policy = load_policy(context.finished_folder("sft"), context.base, context.chat.tokenizer)
    model = run.start(policy, resumable=resumable)
    kl_limit = KlLimit(settings.max_kl or float("inf"), by_exception=not resumable)
    run.callbacks.append(kl_limit)
    make_trainer = rl_trainers.ppo if settings.algorithm == "ppo" else rl_trainers.rloo
    run.train(make_trainer(context, settings, run, model))
    rewards = [entry["reward"] for entry in read_log(run.folder.log) if "reward" in entry]
    return {
        "algorithm": settings.algorithm,
        "prompts": len(context.train_prompts()),
        "stopped_at_kl": kl_limit.reached or None,
        "reward_before": rewards[0] if rewards else None,
        "reward_after": rewards[-1] if rewards else None,
    }


RL = Stage(
    name="rl",
    help="train the policy against the reward model",
    train=train_rl,
    summary=_summary,
    needs=(SFT, REWARD),
    prompts=True,
)
