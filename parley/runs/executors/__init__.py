"""Executors beyond this process: Ray actors, here or on a cluster, and a provider's batches. See docs/executors.md.

The engine calls `run_units` of a `RayPool`, which starts `Worker`s and sends them units. `BatchExecutor` runs units in
this process, and collects their requests into batches.
"""
