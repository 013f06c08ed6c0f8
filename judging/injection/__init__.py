"""Injection: can a judge be moved by the text that it judges?"""

from parley.judging.injection.study import Injection

__all__ = ["Injection"]
