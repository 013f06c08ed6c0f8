"""The documentation as a small site: `python -m docs.build` writes it to `site/`, with no network and nothing loaded
from one.

Pages are the Markdown files of this folder, in the order of `nav.toml`; a page that is not listed there is shown under
"More". Notebooks become pages with the outputs they were saved with, and the reference is made from docstrings. A link
that leads nowhere, to a page or to a heading, ends the build with status 1.
"""

from __future__ import annotations

import argparse
import html
import re
import shutil
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote

from markdown_it import MarkdownIt
from markdown_it.token import Token
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

from docs.commands import commands_page
from docs.notebooks import notebook_as_markdown
from docs.reference import reference_page
from docs.search_index import search_script

HERE = Path(__file__).parent
ROOT = HERE.parent
OUTSIDE = ("http://", "https://", "mailto:")


@dataclass(slots=True)
class Page:
    """A page to be: where its text is from, what it is called, and after rendering its body and headings."""

    name: str
    text: str
    folder: Path
    title: str = ""
    body: str = ""
    headings: dict[str, str] = field(default_factory=dict)
    links: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Section:
    title: str
    pages: list[str]


def slug(heading: str) -> str:
    """A heading's address, as GitHub makes it, so that a link works in both places."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")


def coloured(code: str, language: str, _: str) -> str:
    try:
        lexer = get_lexer_by_name(language)
    except ClassNotFound:
        return html.escape(code)
    return str(highlight(code, lexer, HtmlFormatter(nowrap=True)))


def reader() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": False, "highlight": coloured}).enable(["table", "strikethrough"])


def plain(token: Token) -> str:
    return "".join(child.content for child in token.children or [] if child.type in ("text", "code_inline"))


def inner(tokens: list[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        yield from inner(token.children or [])


def render(page: Page, names: dict[Path, str]) -> None:
    """Fill in body, headings and links; links between files become links between pages."""
    markdown = reader()
    tokens = markdown.parse(page.text)
    for at, token in enumerate(tokens):
        if token.type == "heading_open":
            words = plain(tokens[at + 1])
            address = slug(words)
            while address in page.headings:
                address += "-1"
            page.headings[address] = words
            token.attrSet("id", address)
            page.title = page.title or words
    unlinked = False
    for token in inner(tokens):
        if token.type == "link_open":
            target = linked(str(token.attrGet("href")), page, names)
            unlinked = target is None
            token.attrs = {} if target is None else {"href": target}
        if token.type in ("link_open", "link_close") and unlinked:
            token.tag = "span"
        elif token.type == "image" and not str(token.attrGet("src")).startswith("data:"):
            page.links.append(f"file:{(page.folder / str(token.attrGet('src'))).resolve()}")
            token.attrSet("src", f"figures/{Path(str(token.attrGet('src'))).name}")
            token.attrSet("loading", "lazy")
    body = str(markdown.renderer.render(tokens, markdown.options, {}))
    page.body = body.replace("<table>", '<div class="wide"><table>').replace("</table>", "</table></div>")


def linked(target: str, page: Page, names: dict[Path, str]) -> str | None:
    """Where a link goes on the site; noted, to be looked at when all pages are there. None: to a file of the repository
    that is no page, which the site names and cannot open."""
    if target.startswith(OUTSIDE):
        return target
    path, _, heading = unquote(target).partition("#")
    file = (page.folder / path).resolve() if path else None
    if file is not None and file not in names and file.exists():
        return None
    name = page.name if file is None else names.get(file, f"missing:{path}")
    page.links.append(f"{name}#{heading}" if heading else name)
    return (f"{name}.html" if file else "") + (f"#{heading}" if heading else "")


def broken(pages: dict[str, Page]) -> list[str]:
    """Links that lead nowhere, one line each."""
    found = []
    for page in pages.values():
        for link in page.links:
            if link.startswith("file:"):
                if not Path(link[5:]).is_file():
                    found.append(f"{page.name}: there is no picture {Path(link[5:]).name}")
                continue
            name, _, heading = link.partition("#")
            if name not in pages:
                found.append(f"{page.name}: no page for {name.removeprefix('missing:')}")
            elif heading and heading not in pages[name].headings:
                found.append(f"{page.name}: {name} has no heading #{heading}")
    return found


def collect() -> tuple[dict[str, Page], list[Section]]:
    """All pages, and the order in which they are shown."""
    plan = tomllib.loads((HERE / "nav.toml").read_text("utf-8"))
    files = {path.stem: path for path in sorted(HERE.glob("*.md"))}
    files |= {name: (HERE / path).resolve() for name, path in plan["elsewhere"].items()}
    pages = {name: Page(name, path.read_text("utf-8"), path.parent) for name, path in files.items()}
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        pages[f"notebook-{path.stem}"] = Page(f"notebook-{path.stem}", notebook_as_markdown(path), path.parent)
        files[f"notebook-{path.stem}"] = path
    for room, modules in plan["reference"].items():
        pages[f"reference-{room}"] = Page(f"reference-{room}", reference_page(room, modules), HERE)
    pages["commands"] = Page("commands", commands_page(), HERE)
    names = {path.resolve(): name for name, path in files.items()}
    for page in pages.values():
        render(page, names)
    sections = [Section(one["title"], one["pages"]) for one in plan["section"]]
    sections.append(Section("Notebooks", [name for name in pages if name.startswith("notebook-")]))
    sections.append(Section("Reference", ["commands", *(name for name in pages if name.startswith("reference-"))]))
    listed = {name for section in sections for name in section.pages}
    if lost := sorted(listed - pages.keys()):
        raise SystemExit(f"docs: nav.toml lists pages that do not exist: {', '.join(lost)}")
    if more := [name for name in pages if name not in listed]:
        sections.append(Section("More", more))
    return pages, sections


def menu(current: Page, pages: dict[str, Page], sections: list[Section]) -> str:
    lines = []
    for section in sections:
        lines.append(f"<p>{html.escape(section.title)}</p><ul>")
        for name in section.pages:
            short = pages[name].title.partition(":")[0]
            here = ' aria-current="page"' if name == current.name else ""
            lines.append(f'<li><a href="{name}.html"{here}>{html.escape(short)}</a></li>')
        lines.append("</ul>")
    return "".join(lines)


def ends(name: str, pages: dict[str, Page], sections: list[Section]) -> str:
    """The pages before and after this one."""
    order = [one for section in sections for one in section.pages]
    at = order.index(name)
    links = [("← ", order[at - 1], "")] if at else []
    links += [("", order[at + 1], " →")] if at + 1 < len(order) else []
    return "".join(f'<a href="{to}.html">{a}{html.escape(pages[to].title)}{z}</a>' for a, to, z in links)


def filled(frame: str, parts: dict[str, str]) -> str:
    return re.sub(r"\{(\w+)\}", lambda at: parts[at[1]], frame)


def build(out: Path) -> list[str]:
    """Write the site; what is broken is returned, and nothing is written then."""
    pages, sections = collect()
    if faults := broken(pages):
        return faults
    frame = (HERE / "theme" / "page.html").read_text("utf-8")
    out.mkdir(parents=True, exist_ok=True)
    shutil.copytree(HERE / "figures", out / "figures", dirs_exist_ok=True)
    light, dark = (HtmlFormatter(style=style).get_style_defs("pre code") for style in ("default", "github-dark"))
    style = (HERE / "theme" / "site.css").read_text("utf-8")
    (out / "site.css").write_text(f"{style}{light}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}\n", "utf-8")
    search = (HERE / "theme" / "search.js").read_text("utf-8")
    found = {name: (page.title, page.body) for name, page in pages.items()}
    (out / "search.js").write_text(search_script(found, search), "utf-8")
    for page in pages.values():
        parts = {
            "title": html.escape(page.title),
            "menu": menu(page, pages, sections),
            "body": page.body,
            "ends": ends(page.name, pages, sections),
        }
        (out / f"{page.name}.html").write_text(filled(frame, parts), "utf-8")
    return []


def main() -> int:
    parser = argparse.ArgumentParser(description="Build the documentation as a site.")
    parser.add_argument("--out", type=Path, default=Path("site"), help="where it goes (default: site)")
    out: Path = parser.parse_args().out
    faults = build(out)
    for line in faults:
        print(f"docs: {line}", file=sys.stderr)
    if not faults:
        print(f"{len(list(out.glob('*.html')))} pages: {out / 'index.html'}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
