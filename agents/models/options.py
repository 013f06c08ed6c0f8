"""The options of every model: what may follow the `?` in its name, and what AutoGen saves of a client."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

THINK_TOKENS = 16_384
"""The room to think, beyond the limit of the answer, of a model that is known or was seen to think."""
Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]


class ClientOptions(BaseModel):
    """What may follow the `?` in a model's name, or be passed to `model()` in Python."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    temperature: float | None = Field(None, ge=0, le=2, description="sampling temperature (default: the model's own)")
    top_p: float | None = Field(None, gt=0, le=1, description="nucleus sampling (default: the model's own)")
    max_tokens: int | None = Field(None, ge=1, description="maximum tokens of an answer (default: the model's own)")
    think_tokens: int | None = Field(
        None,
        ge=0,
        description=f"room to think, in tokens beyond max_tokens (default: {THINK_TOKENS:,} for a model that thinks)",
    )
    effort: Effort | None = Field(None, description="how much the model thinks (default: the model's own)")
    seed: int | None = Field(None, description="sampling seed (default in a run: one per request)")
    timeout: float = Field(120.0, gt=0, description="seconds after which a call counts as failed")
    max_connections: int = Field(
        256, ge=1, description="number of concurrent calls (default: what the server can use, at most 256)"
    )
    retries: int = Field(6, ge=0, description="further attempts after a failure that may pass")
    price_in: float | None = Field(None, ge=0, description="US dollars per million prompt tokens")
    price_out: float | None = Field(None, ge=0, description="US dollars per million reply tokens")
    price_cached: float | None = Field(
        None, ge=0, description="US dollars per million prompt tokens read from the vendor's prompt cache"
    )

    SAMPLING: ClassVar[tuple[str, ...]] = ("temperature", "top_p", "max_tokens", "think_tokens", "effort", "seed")

    def sampling(self) -> dict[str, Any]:
        """The sampling options that are set."""
        values = ((key, getattr(self, key)) for key in self.SAMPLING)
        return {key: value for key, value in values if value is not None}


class ClientConfig(BaseModel):
    """What AutoGen's `dump_component` saves of a client: never a key, which comes from the environment."""

    name: str
    options: dict[str, Any] = {}
