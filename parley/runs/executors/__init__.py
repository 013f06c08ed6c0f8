"""Executors beyond this process: worker processes, a Ray cluster, a provider's batches. See docs/executors.md.

The engine calls `run_units` of a `WorkerPool` (`ProcessPool` or `RayPool`); the pool starts `Worker`s and sends each
`Instructions`, and a worker answers with a `WorkerReport`. `BatchExecutor` runs units in this process, and collects
their requests into batches.
"""
