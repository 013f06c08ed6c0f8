"""The site: no link is broken, nothing is loaded from outside, everything public is documented."""

from __future__ import annotations

import json
import re
import shutil
import tomllib
from itertools import product
from pathlib import Path

import pytest

from docs import build, gallery
from docs.reference import undocumented

CHROMIUM = next((path for name in ("chromium", "google-chrome") if (path := shutil.which(name))), None)


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


def test_the_decisions_stay_a_page(root: Path) -> None:
    """What explains one line stands beside that line; the page has what shapes the whole."""
    text = (root / "docs" / "decisions.md").read_text("utf-8")
    assert len(re.findall(r"^## ", text, re.M)) <= 16
    assert len(text.split()) <= 4000


def test_every_command_has_its_help_on_the_site(site: Path) -> None:
    page = (site / "commands.html").read_text("utf-8")
    for name in ("run", "run-malibu", "run-rubric", "report", "scenarios-list", "run-malibu-derive", "power"):
        assert f'id="parley-{name}"' in page
    assert "--executor {asyncio,ray}" in page
    assert "<code></code>" not in page.replace("\n", ""), "no help is empty"


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
def test_pages_fit_the_screen_and_search_copy_and_dark_colours_work_from_disk(site: Path) -> None:
    sync_api = pytest.importorskip("playwright.sync_api")
    prose = "main > p, main > ul, main > ol, main h2, pre:has(> .language-sh), pre:has(> .language-bash)"
    too_wide = f"[...document.querySelectorAll('{prose}')].filter((e) => e.scrollWidth > e.clientWidth + 1).length"
    end_of_menu = "document.querySelector('.menu').lastElementChild.getBoundingClientRect().bottom"
    background = "getComputedStyle(document.body).backgroundColor"
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(color_scheme="dark")
        for width, name in product((390, 1440), ("malibu", "replications", "commands", "tutorial")):
            page.set_viewport_size({"width": width, "height": 900})
            page.goto((site / f"{name}.html").as_uri())
            assert page.evaluate("document.documentElement.scrollWidth") <= width, name
            assert page.evaluate(too_wide) == 0, name
            assert page.locator("nav.contents").is_visible() is (width > 1000), name
            assert width < 1000 or name == "commands" or page.evaluate(end_of_menu) <= 900, (
                name
            )  # whose section is open
        dark = page.evaluate(background)
        page.click("#theme")
        assert page.evaluate(background) != dark
        button = page.locator(".block button").first
        button.click(force=True)
        sync_api.expect(button).to_have_text("copied")
        page.fill("#search", "tutorial")
        assert page.locator("#found a").first.get_attribute("href").startswith("tutorial.html")
        browser.close()


def test_the_gallery_shows_the_figure_that_its_command_draws(root: Path) -> None:
    assert f"(figures/{gallery.PICTURE.name})" in (root / "docs" / "gallery.md").read_text("utf-8")
    assert gallery.PICTURE.stat().st_size < 100_000


def test_nothing_is_loaded_from_outside(site: Path) -> None:
    for page in [*site.glob("*.html"), site / "site.css"]:
        text = page.read_text("utf-8")
        assert re.findall(r'(?:src|@import|url\()\s*=?["\s(]*https?:', text) == []
        assert set(re.findall(r"<script[^>]*>", text)) <= {'<script src="site.js">'}
        assert re.findall(r'<link[^>]+href="(?!site\.css")', text) == []


def test_the_search_finds_a_heading_that_is_there(site: Path) -> None:
    text = (site / "site.js").read_text("utf-8")
    sections = json.loads(text[len("const SECTIONS = ") : text.index(";\n")])
    expected = "reading.html#when-not-to-trust-a-judge"
    assert any(section["to"] == expected and "It follows the position" in section["text"] for section in sections)
    for section in sections:
        file, _, heading = section["to"].partition("#")
        assert f'id="{heading}"' in (site / file).read_text("utf-8")


def test_a_broken_link_ends_the_build_and_one_to_a_file_becomes_plain_text(tmp_path: Path) -> None:
    (tmp_path / "code.py").write_text("")
    text = "# A\n\n[b](b.md), [there](#there), [here](#a), [the code](code.py)\n\n![x](x.png)"
    page = build.Page("a", text, tmp_path)
    build.render(page, {})
    assert build.broken_links({"a": page}) == [
        "a: there is no page b.md",
        "a: a has no heading #there",
        "a: there is no picture x.png",
    ]
    assert '<a href="#a">here</a>, <span>the code</span>' in page.body


def test_markdown_in_the_output_of_a_notebook_is_not_rendered(tmp_path: Path) -> None:
    printed = {"text": ["# A card\n", "```python\n", "load()\n", "```\n"]}
    cells = [{"cell_type": "code", "source": ["print(card)"], "outputs": [printed]}]
    (tmp_path / "a.ipynb").write_text(json.dumps({"cells": [*cells, {"cell_type": "markdown", "source": ["## Next"]}]}))
    page = build.Page("a", "# A\n\n" + build.notebook_as_markdown(tmp_path / "a.ipynb"), tmp_path)
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
