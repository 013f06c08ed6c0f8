"""Toxicity scorers compared and audited."""
