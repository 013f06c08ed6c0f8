"""Generated bad input for everything that is parsed.

Hypothesis edits valid inputs as text, as bytes and as structures. An input must be accepted, or rejected with an error
message of Parley's; anything else is a failure, and an input that fails is reduced to a small one. The tests run a few
inputs per parser; the campaign, marked `nightly`, runs many and writes its counts into tests/NIGHTLY.md:

    python -m tests.nightly
"""
