"""Parley's analysis: pure functions over data frames.

from parley.analysis import chi_square, win_rates

`effects` estimates, `decide` gives verdicts, `say` puts them in words, `page` shows them; `stats` has the statistics.
None depends on a study.
"""

from typing import TYPE_CHECKING

from parley.base.lazy import import_on_first_use

if TYPE_CHECKING:  # imported when first used: pandas takes half a second, and a plan's contrasts do not need it
    from parley.analysis.frames import chi_square, win_rates
else:
    __getattr__, __dir__ = import_on_first_use(__name__, {"parley.analysis.frames": ("chi_square", "win_rates")})

__all__ = ["chi_square", "win_rates"]
