"""The study `framing`: does a model admit its biases (RLDF's figure 1)?

`study` asks, `report` compares the framings.
"""

from parley.judging.framing.study import Framing

__all__ = ["Framing"]
