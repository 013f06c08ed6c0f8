"""Golden results: what every study plans, asks, stores and reports on simulated models, as it was when last recorded.

    python -m tests.golden                      # make all cases again and compare; status 1 if anything differs
    python -m tests.golden malibu-paper rldf    # only these
    python -m tests.golden --record rldf        # a change is wanted: write it down; `git diff` shows what it was

A case (`cases.toml`) is a few commands that a user could type. `making` runs them, and turns run files, printed JSON
and pages into rows and sentences with addresses. `comparing` says which of them are equal, moved, changed, gone or new.
`results/` has one file a case.
"""
