"""Did training help? Metrics of a reward model and of a policy, beside the baselines."""
