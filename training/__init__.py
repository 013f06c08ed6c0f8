"""Parley's training room: RLDF's supervised tuning, reward model and reinforcement learning will live here."""

__house__ = "parley"
