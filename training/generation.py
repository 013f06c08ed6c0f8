"""Completions of the model that is trained: sampled for probes, and decoded with CUDA graphs in TRL's trainers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from parley.training.tokenization import ChatTokenizer, pad


def sample_completions(
    model: Any,
    chat: ChatTokenizer,
    prompts: Sequence[str],
    *,
    max_completion_length: int,
    temperature: float,
    seed: int,
    cuda_graphs: bool = True,
    batch_size: int = 32,
) -> list[list[int]]:
    """Completions as tokens, up to and including the end token; the same for the same seed.

    The random state is restored afterwards: how often a model is probed must not change its training.

    Args:
        model: A language model of transformers.
        chat: Its tokenizer.
        prompts: Texts of the user's message.
        max_completion_length: Maximum tokens per completion.
        temperature: Of sampling; 0 decodes greedily.
        seed: Of sampling.
        cuda_graphs: Whether to decode with CUDA graphs, where model and device allow it.
        batch_size: Prompts per batch.
    """
    import torch

    from parley.agents.models.cuda_graphs import cuda_graph_decoding

    completions: list[list[int]] = []
    device, eos, padding = next(model.parameters()).device, chat.tokenizer.eos_token_id, chat.tokenizer.pad_token_id
    was_training, cpu_state = model.training, torch.random.get_rng_state()
    cuda_state = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
    torch.manual_seed(seed)
    model.eval()
    for start in range(0, len(prompts), batch_size):
        ids, mask = pad([chat.prompt(text) for text in prompts[start : start + batch_size]], padding, side="left")
        length = ids.shape[1] + max_completion_length
        with torch.no_grad(), cuda_graph_decoding(model, length, enabled=cuda_graphs) as fast:
            generated = model.generate(
                input_ids=ids.to(device),
                attention_mask=mask.to(device),
                max_new_tokens=max_completion_length,
                do_sample=temperature > 0,
                **({"temperature": temperature, "top_k": 0, "top_p": 1.0} if temperature > 0 else {}),
                pad_token_id=padding,
                eos_token_id=eos,
                **fast,
            )
        for row in generated[:, ids.shape[1] :].tolist():
            completions.append(row[: row.index(eos) + 1] if eos in row else row)
    model.train(was_training)
    torch.random.set_rng_state(cpu_state)
    if cuda_state:
        torch.cuda.set_rng_state_all(cuda_state)
    return completions


def use_cuda_graphs(trainer: Any) -> None:
    """Makes an RLOO or GRPO trainer decode with CUDA graphs, where model and device allow it."""
    from parley.agents.models.cuda_graphs import cuda_graph_decoding

    policy = trainer.accelerator.unwrap_model(trainer.model)
    plain_generate = policy.generate

    def generate(*args: Any, **kwargs: Any) -> Any:
        if kwargs.get("generation_config") is not trainer.generation_config:
            return plain_generate(*args, **kwargs)
        with cuda_graph_decoding(policy, kwargs["input_ids"].shape[1] + trainer.max_completion_length) as fast:
            return plain_generate(*args, **kwargs, **fast)

    policy.generate = generate
    trainer.generation_config.disable_compile = False
