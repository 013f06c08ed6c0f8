"""MALIBU: the study, what its judges see and report, and the studies that write new scenarios."""

from parley.judging.malibu.config import MalibuConfig
from parley.judging.malibu.study import Malibu

__all__ = ["Malibu", "MalibuConfig"]
