"""The site: no link is broken, nothing is loaded from outside, everything public is documented."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

from docs import build
from docs.notebooks import notebook_as_markdown
from docs.reference import as_markdown, undocumented


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("site")
    assert build.build(out) == []
    return out


def test_every_page_is_there_and_in_the_menu(site: Path, root: Path) -> None:
    home = (site / "index.html").read_text("utf-8")
    for page in (root / "docs").glob("*.md"):
        assert (site / f"{page.stem}.html").is_file()
        assert f'href="{page.stem}.html"' in home


def test_every_decision_is_in_the_table_of_its_page(root: Path) -> None:
    text = (root / "docs" / "decisions.md").read_text("utf-8")
    decisions = re.findall(r"^## (.*)$", text, re.M)
    listed = re.findall(r"\[([^\]]+)\]\(#", text.partition("\n## ")[0])
    assert len(decisions) > 40
    assert listed == decisions, "every decision is listed once, in the order of the page"


def test_the_arguments_in_a_docstring_become_a_list() -> None:
    text = "What it does.\n\nArgs:\n    first: One line.\n    second: Two\n        lines.\n\nMore."
    assert as_markdown(text) == (
        "What it does.\n\n**Arguments**\n\n- `first`: One line.\n- `second`: Two lines.\n\nMore."
    )


def test_every_command_has_its_help_on_the_site(site: Path) -> None:
    page = (site / "commands.html").read_text("utf-8")
    for name in ("run", "run-malibu", "run-rubric", "report", "score-bbq", "scenarios-derive", "power", "import"):
        assert f'id="parley-{name}"' in page
    assert "--executor {asyncio,processes,ray,batch}" in page
    assert "<code></code>" not in page.replace("\n", ""), "no help is empty"


def test_nothing_is_loaded_from_outside(site: Path) -> None:
    for page in [*site.glob("*.html"), site / "site.css"]:
        text = page.read_text("utf-8")
        assert re.findall(r'(?:src|@import|url\()\s*=?["\s(]*https?:', text) == []
        assert set(re.findall(r"<script[^>]*>", text)) <= {'<script src="search.js">'}
        assert re.findall(r'<link[^>]+href="(?!site\.css")', text) == []


def test_every_local_link_of_the_site_has_a_target(site: Path) -> None:
    """Checked in the pages themselves, independently of the builder."""
    pages = {page.name: page.read_text("utf-8") for page in site.glob("*.html")}
    for name, text in pages.items():
        for target in re.findall(r'href="([^"]+)"', text):
            file, _, heading = target.partition("#")
            if target.startswith(("http", "mailto:")) or file == "site.css":
                continue
            assert (file or name) in pages, f"{name} links to {target}"
            assert not heading or f'id="{heading}"' in pages[file or name], f"{name} links to {target}"
        for picture in re.findall(r'src="([^":]+)"', text):
            assert (site / picture).is_file(), f"{name} shows {picture}"


def test_the_search_finds_a_heading_that_is_there(site: Path) -> None:
    text = (site / "search.js").read_text("utf-8")
    sections = json.loads(text[len("const SECTIONS = ") : text.index(";\n")])
    expected = "reading.html#when-not-to-trust-a-judge"
    assert any(section["to"] == expected and "AUC" in section["text"] for section in sections)
    for section in sections:
        file, _, heading = section["to"].partition("#")
        assert f'id="{heading}"' in (site / file).read_text("utf-8")


def test_a_broken_link_ends_the_build(tmp_path: Path) -> None:
    page = build.Page("a", "# A\n\n[b](b.md), [there](#there), [here](#a)\n\n![x](x.png)", tmp_path)
    build.render(page, {})
    assert build.broken_links({"a": page}) == [
        "a: there is no page b.md",
        "a: a has no heading #there",
        "a: there is no picture x.png",
    ]


def test_a_link_to_a_file_that_is_not_a_page_becomes_plain_text(tmp_path: Path) -> None:
    (tmp_path / "code.py").write_text("")
    page = build.Page("a", "# A\n\nsee [the code](code.py), [itself](#a)", tmp_path)
    build.render(page, {})
    assert build.broken_links({"a": page}) == []
    assert '<span>the code</span>, <a href="#a">itself</a>' in page.body


def test_markdown_in_the_output_of_a_notebook_is_not_rendered(tmp_path: Path) -> None:
    printed = {"text": ["# A card\n", "```python\n", "load()\n", "```\n"]}
    cells = [{"cell_type": "code", "source": ["print(card)"], "outputs": [printed]}]
    (tmp_path / "a.ipynb").write_text(json.dumps({"cells": [*cells, {"cell_type": "markdown", "source": ["## Next"]}]}))
    page = build.Page("a", "# A\n\n" + notebook_as_markdown(tmp_path / "a.ipynb"), tmp_path)
    build.render(page, {})
    assert list(page.headings) == ["a", "next"]
    assert page.body.count("<pre>") == 2


def test_links_in_the_readme_point_to_files(root: Path) -> None:
    for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"):
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", (root / name).read_text("utf-8")):
            assert (root / target).exists(), f"{name} links to {target}"


def test_everything_public_has_a_docstring(root: Path) -> None:
    packages = tomllib.loads((root / "docs" / "nav.toml").read_text("utf-8"))["reference"]
    assert [name for modules in packages.values() for name in undocumented(modules)] == []
