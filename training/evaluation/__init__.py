"""Metrics of a reward model on held-out pairs, and of a policy against the baselines."""
