"""Whether a paper's claims hold in our runs: claims as data, one rule for all of them, and the page that says it.

    claims = read_claims(path)                      # a TOML file beside the paper's tables
    findings = find(claims, values, printed)        # values: one row per item, measure, set and method

This package knows no study. A study's data code gives `values`, a frame with the columns VALUES.
"""
