"""Executors past one process: worker processes, a Ray cluster, a provider's batches. See docs/executors.md."""
