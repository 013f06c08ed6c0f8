"""Reinforcement learning: reward − β·KL(policy ‖ SFT), by RLOO (the default), GRPO, DPO (on the pairs), or PPO.

RLOO has the paper's objective, with the mean reward of a prompt's other completions in place of a critic. PPO with a
critic, as in the paper, was last in trl 1.12.0. Completions are sampled: the published script turns sampling off, and
then all completions of a prompt are equal and there is nothing to learn from.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from parley.base.errors import ConfigError
from parley.base.text import number_text, plural
from parley.training.config import RlSettings
from parley.training.reward import train_reward
from parley.training.sft import train_sft
from parley.training.stages import Facts, stage

if TYPE_CHECKING:
    from parley.training.context import TrainingContext
    from parley.training.stage_run import StageRun

PPO_TRL = "1.12.0"


def check_rl(settings: RlSettings) -> None:
    """ConfigError, before anything is trained, if trl does not have the algorithm or vLLM is missing."""
    if settings.use_vllm and settings.algorithm not in ("rloo", "grpo"):
        raise ConfigError(f"rl.use_vllm: {settings.algorithm} does not generate with vLLM; rloo and grpo do")
    if settings.use_vllm and find_spec("vllm") is None:
        raise ConfigError("rl.use_vllm needs vLLM: pip install vllm (without it, set rl.use_vllm = false)")
    if settings.algorithm == "ppo":
        try:
            import trl.experimental.ppo  # noqa: F401
        except ModuleNotFoundError:
            raise ConfigError(
                f"trl dropped PPO in 1.13: pip install trl=={PPO_TRL}, or use rl.algorithm = 'rloo', which has the "
                "same objective without a critic"
            ) from None


def _draw_curves(context: TrainingContext) -> None:
    from parley.analysis.reporting.figures import save
    from parley.training.callbacks import read_log
    from parley.training.device import is_main
    from parley.training.figures import training_curves
    from parley.training.folders import LOG

    folder, config = context.finished_folder("rl"), context.config
    if is_main() and not (folder / "curves.svg").is_file():
        save(training_curves(read_log(folder / LOG), f"{config.rl.algorithm} on {config.base}"), folder / "curves")


def _summary(facts: Facts) -> list[str]:
    stopped = f"; stopped at a KL of {facts['stopped_at_kl']:.1f} nats" if facts["stopped_at_kl"] else ""
    before, after = (number_text(facts[key]["probe_reward"]) for key in ("held_out_before", "held_out"))
    return [
        f"{facts['algorithm']}, {plural(facts['steps'], 'update')}; reward on held-out prompts {before} → {after}, win "
        f"rate against SFT {facts['held_out']['win_rate']:.2f} by the reward model{stopped}"
    ]


@stage(
    "rl",
    table=RlSettings,
    needs=(train_sft, train_reward),
    help="train the policy against the reward model",
    prompts=True,
    check=check_rl,
    unrelated=("vllm_gpu_memory_utilization", "allow_weak_reward"),  # the latter decides whether it runs, not how
    done=_draw_curves,
    summary=_summary,
)
def train_rl(context: TrainingContext, settings: RlSettings, run: StageRun) -> Facts:
    """Trains the policy from the SFT model, with the config's algorithm.

    Raises:
        WeakReward: The reward model has learnt nothing to train with.
    """
    from parley.training import device, rl_trainers
    from parley.training.adapters import load_policy
    from parley.training.callbacks import KlLimit, SampleProbe, TimeLimit
    from parley.training.evaluation.reward_quality import RewardScorer

    rl_trainers.refuse_weak_reward(context)
    reward = rl_trainers.RewardFunction(RewardScorer.load(context))
    sft, tokenizer = context.finished_folder("sft"), context.chat.tokenizer
    resumable = settings.algorithm != "ppo"
    model = run.start(load_policy(sft, context.base, tokenizer), resumable=resumable)
    probe = rl_trainers.HeldOutProbe(context, reward)
    if run.checkpoint is not None:
        # A resumed policy is compared with the SFT model too, not with itself at the checkpoint.
        probe(load_policy(sft, context.base, tokenizer).to(device.device()))
    kl_limit = KlLimit(settings.max_kl or float("inf"), by_exception=not resumable)
    time_limit = TimeLimit(settings.max_seconds or float("inf"), by_exception=not resumable)
    run.callbacks += [kl_limit, time_limit, SampleProbe(run.log, settings.probe_steps, probe)]
    trainers = {"dpo": rl_trainers.dpo, "ppo": rl_trainers.ppo}
    trainer = trainers.get(settings.algorithm, rl_trainers.online)(context, settings, run, model, reward)
    run.train(trainer, resumable=resumable)
    return {
        "algorithm": settings.algorithm,
        "prompts": len(context.train_prompts()),
        "stopped_at_kl": kl_limit.reached or None,
        "held_out": probe(trainer.accelerator.unwrap_model(getattr(trainer.model, "policy", trainer.model))),
        "held_out_before": {"probe_reward": sum(probe.sft_rewards) / len(probe.sft_rewards)},
    }
