"""Completions of the model that is trained, sampled for probes."""

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
        batch_size: Prompts per batch.
    """
    import torch

    completions: list[list[int]] = []
    device, eos, padding = next(model.parameters()).device, chat.tokenizer.eos_token_id, chat.tokenizer.pad_token_id
    was_training, cpu_state = model.training, torch.random.get_rng_state()
    cuda_state = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
    torch.manual_seed(seed)
    model.eval()
    for start in range(0, len(prompts), batch_size):
        ids, mask = pad([chat.prompt(text) for text in prompts[start : start + batch_size]], padding, side="left")
        with torch.no_grad():
            generated = model.generate(
                input_ids=ids.to(device),
                attention_mask=mask.to(device),
                max_new_tokens=max_completion_length,
                do_sample=temperature > 0,
                **({"temperature": temperature, "top_k": 0, "top_p": 1.0} if temperature > 0 else {}),
                pad_token_id=padding,
                eos_token_id=eos,
            )
        for row in generated[:, ids.shape[1] :].tolist():
            completions.append(row[: row.index(eos) + 1] if eos in row else row)
    model.train(was_training)
    torch.random.set_rng_state(cpu_state)
    if cuda_state:
        torch.cuda.set_rng_state_all(cuda_state)
    return completions
