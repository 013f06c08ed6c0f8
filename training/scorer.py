"""A trained reward model as a judge of texts: prompt and answer in, one number out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from parley.agents import ConfigError
from parley.training.chat import Chat
from parley.training.stage import read_manifest


@dataclass(frozen=True, slots=True)
class RewardScorer:
    model: Any
    chat: Chat
    batch: int = 32

    @classmethod
    def load(cls, folder: Path, chat: Chat, *, device: Any, dtype: Any) -> RewardScorer:
        from transformers import AutoModelForSequenceClassification

        if read_manifest(folder) is None:
            raise ConfigError(f"there is no reward model at {folder}: parley train reward")
        model = AutoModelForSequenceClassification.from_pretrained(str(folder), dtype=dtype, num_labels=1)
        model.config.pad_token_id = chat.tokenizer.pad_token_id
        return cls(model.to(device).eval(), chat)

    def texts(self, prompts: Sequence[str], answers: Sequence[str]) -> list[float]:
        return self.tokens([self.chat.whole(prompt, text) for prompt, text in zip(prompts, answers, strict=True)])

    def tokens(self, sequences: Sequence[Sequence[int]]) -> list[float]:
        """Scores of token sequences, the long ones together; in the order they came."""
        import torch

        order = sorted(range(len(sequences)), key=lambda at: len(sequences[at]))
        found = [0.0] * len(sequences)
        for start in range(0, len(order), self.batch):
            places = order[start : start + self.batch]
            ids, mask = padded([sequences[at] for at in places], self.chat.tokenizer.pad_token_id, side="right")
            device = next(self.model.parameters()).device
            with torch.no_grad():
                logits = self.model(input_ids=ids.to(device), attention_mask=mask.to(device)).logits
            for at, score in zip(places, logits.float().squeeze(-1).tolist(), strict=True):
                found[at] = score
        return found


def padded(sequences: Sequence[Sequence[int]], pad: int, *, side: str) -> tuple[Any, Any]:
    import torch

    longest = max(map(len, sequences))
    rows, masks = [], []
    for one in sequences:
        gap, there = [pad] * (longest - len(one)), [1] * len(one)
        rows.append([*gap, *one] if side == "left" else [*one, *gap])
        masks.append([*([0] * len(gap)), *there] if side == "left" else [*there, *([0] * len(gap))])
    return torch.tensor(rows), torch.tensor(masks)


def answers(model: Any, chat: Chat, prompts: Sequence[str], *, max_tokens: int, temperature: float, seed: int,
            replay: bool = True, batch: int = 32) -> list[list[int]]:  # fmt: skip
    """Answers sampled from a language model, as tokens up to and with the end token; the same for the same seed."""
    import torch

    from parley.agents.models.cuda_graphs import cuda_graph_decoding

    found: list[list[int]] = []
    device, end, pad = next(model.parameters()).device, chat.tokenizer.eos_token_id, chat.tokenizer.pad_token_id
    was_training, cpu_state = model.training, torch.random.get_rng_state()
    cuda_state = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
    torch.manual_seed(seed)
    model.eval()
    for start in range(0, len(prompts), batch):
        ids, mask = padded([chat.prompt(one) for one in prompts[start : start + batch]], pad, side="left")
        length = ids.shape[1] + max_tokens
        with torch.no_grad(), cuda_graph_decoding(model, length, enabled=replay) as fast:
            made = model.generate(
                input_ids=ids.to(device),
                attention_mask=mask.to(device),
                max_new_tokens=max_tokens,
                do_sample=temperature > 0,
                **({"temperature": temperature, "top_k": 0, "top_p": 1.0} if temperature > 0 else {}),
                pad_token_id=pad,
                eos_token_id=end,
                **fast,
            )
        for row in made[:, ids.shape[1] :].tolist():
            found.append(row[: row.index(end) + 1] if end in row else row)
    model.train(was_training)
    torch.random.set_rng_state(cpu_state)
    if cuda_state:
        torch.cuda.set_rng_state_all(cuda_state)
    return found
