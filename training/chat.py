"""Prompts and answers as tokens, the same everywhere: an answer ends on the end token, in training as in sampling.

A chat template may put more after that token (a line break, say) which a policy never writes; a reward model that was
trained on it judges policies by a text it has never seen. So answers are put behind the prompt by hand.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from parley.agents import ConfigError
from parley.training.pairs import PreferencePair


@dataclass(frozen=True, slots=True)
class Chat:
    tokenizer: Any
    longest: int

    def messages(self, prompt: str) -> list[dict[str, str]]:
        return [{"role": "user", "content": prompt}]

    def prompt(self, prompt: str) -> list[int]:
        """The prompt, up to where the answer begins."""
        found = self.tokenizer.apply_chat_template(self.messages(prompt), add_generation_prompt=True, return_dict=True)
        ids = list(found["input_ids"])
        if len(ids) >= self.longest - 1:
            raise ConfigError(f"a prompt of {len(ids)} tokens leaves no room for an answer: raise max_length")
        return ids

    def rendered(self, prompt: str) -> str:
        """The same as text, without a first token that the tokenizer adds by itself."""
        text = str(
            self.tokenizer.apply_chat_template(self.messages(prompt), add_generation_prompt=True, tokenize=False)
        )
        first = self.tokenizer.bos_token
        adds = first is not None and self.tokenizer("")["input_ids"][:1] == [self.tokenizer.bos_token_id]
        return text.removeprefix(first) if adds else text

    def answer(self, text: str) -> list[int]:
        return [*self.tokenizer(text, add_special_tokens=False)["input_ids"], self.tokenizer.eos_token_id]

    def whole(self, prompt: str, text: str) -> list[int]:
        """Prompt and answer, cut on the right to the length allowed; the end token stays."""
        begun, said = self.prompt(prompt), self.answer(text)
        if len(begun) + len(said) <= self.longest:
            return begun + said
        return [*(begun + said)[: self.longest - 1], self.tokenizer.eos_token_id]

    def example(self, prompt: str, text: str) -> dict[str, list[int]]:
        """For SFT: only the answer is learnt."""
        ids, begun = self.whole(prompt, text), len(self.prompt(prompt))
        return {"input_ids": ids, "labels": [-100] * begun + ids[begun:]}

    def pair(self, pair: PreferencePair) -> dict[str, list[int]]:
        """For the reward model. Two sides that are the same tokens would teach nothing, and nobody would notice."""
        chosen, rejected = self.whole(pair.prompt, pair.chosen.text), self.whole(pair.prompt, pair.rejected.text)
        if chosen == rejected:
            raise ConfigError(
                f"pair {pair.id}: chosen and rejected are the same {len(chosen)} tokens"
                + (" after the cut: raise max_length" if len(chosen) == self.longest else "")
            )
        return {"chosen_ids": chosen, "rejected_ids": rejected}

    def is_cut(self, prompt: str, text: str) -> bool:
        return len(self.prompt(prompt)) + len(self.answer(text)) > self.longest
