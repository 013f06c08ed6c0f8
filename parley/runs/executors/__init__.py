"""The executor beyond this process: Ray actors, here or on a cluster. See docs/runs.md.

The engine calls `run_units` of a `RayPool`, which starts `Worker`s and sends them units.
"""
