"""Generated bad input for everything that is parsed.

    python -m tests.fuzz --inputs 100000 --seed 1

Valid inputs are mutated as text, as bytes and as structures; Hypothesis makes the random choices. An input must be
accepted, or rejected with an error message of Parley's. Anything else is a failure, and so is more than a second of
work (five for a whole command or report) or 500 MB. An input that fails is reduced to a small one. The tests run a few
inputs per target, with a limit on time that only an input that hangs reaches.
"""
