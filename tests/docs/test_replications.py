"""The page of replications: its chosen claims are in the papers' files, and its table says what their pages say."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pandas as pd

from docs.replications import table
from parley.judging.papers import paper


def test_every_chosen_headline_is_a_claim_of_its_paper(root: Path) -> None:
    words = tomllib.loads((root / "docs" / "replications.toml").read_text("utf-8"))
    page = (root / "docs" / "replications.md").read_text("utf-8")
    for name in words["papers"]:
        claims = [f"“{claim.quote}” ({claim.section})" for claim in paper(name).claim]
        lost = [chosen for chosen in words[name]["headlines"] if not any(chosen in claim for claim in claims)]
        assert not lost, name
        assert f"## {paper(name).title}\n" in page


def test_the_table_has_the_chosen_claims_and_counts_the_others() -> None:
    claims = pd.DataFrame(
        [
            ("“a” (abstract)", "x lower: m against each of n, o", "5 against 6", "4 against 6", "replicated"),
            ("“b” (abstract)", "|r| below 1", "", "0.2 (0.1 to 0.3)", "undecided: too few"),
            ("“c” (abstract)", "y lower", "", "", "not measured: needs z"),
            ("“d” (4)", "w lower", "", "1 (0 to 2)", "contrary"),
        ],
        columns=["claim", "tested", "paper", "ours", "verdict"],
    )
    lines = list(table(claims, ["(abstract)"], "as z was not run"))
    assert lines[2:] == [
        "| x lower: m against all others | 5 against 6 | 4 against 6 | **replicated** |",
        "| &#124;r&#124; below 1 | – | 0.2 (0.1 to 0.3) | undecided |",
        "\nOf the paper's other rows 1 contrary. Not measured: 1 row, as z was not run.",
    ]
