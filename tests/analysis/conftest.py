"""Frames have their texts as `parley.reports.make_report` has them; the notebooks' frames are as pandas makes them."""

from __future__ import annotations

import pandas as pd

pd.set_option("mode.string_storage", "python")
