"""A user's own study, as the text of a Python file: tests add the class that is run, with what is special about it."""

from __future__ import annotations

STUDY = '''
"""A user's own study."""
from pydantic import BaseModel
from parley.agents import Assessment, Critique, Debate, Persona, Transcript
from parley import judging
from parley.judging import Outcome, Unit, Verdict

class Study(judging.Study):
    name = "own"

    class Config(BaseModel):
        model: str = "sim/talk"
        seed: int = 0
'''
