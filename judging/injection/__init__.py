"""Injection: can a judge be influenced by the text that it judges?"""

from parley.judging.injection.study import Injection

__all__ = ["Injection"]
