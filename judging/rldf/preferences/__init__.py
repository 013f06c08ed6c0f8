"""Audits of preference datasets: what a reward model could learn from the pairs instead of their content."""
