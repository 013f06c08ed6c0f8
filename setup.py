"""Everything stands in pyproject.toml. This silences a note of setuptools that pip prints even with -q."""

import warnings

from setuptools import setup

warnings.filterwarnings("ignore", "Editable installation")
setup()
