"""Build the documentation as a small site: `python -m docs.build` writes it to `site/`.

Building needs no network, and the pages load nothing from one. They are the README and the Markdown files of this
folder, in the order of `nav.toml`; a page that is not listed there is put under "More". Notebooks become pages with
their stored outputs. The reference is made from docstrings, the commands' own help, and data files. A broken link, to a
page or to a heading, ends the build with status 1.
"""

from __future__ import annotations

import argparse
import html
import json
import re
import shutil
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from markdown_it import MarkdownIt
from markdown_it.token import Token
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

from docs.commands import commands_page
from docs.generated import SOURCES, generated_pages, generated_sections
from docs.reference import reference_page

HERE = Path(__file__).parent
ROOT = HERE.parent
FIGURES = HERE / "figures"
EXTERNAL = ("http://", "https://", "mailto:")
CONTENTS_LEVELS = ("h2", "h3")
SECTION = re.compile(r'<h[1-6] id="([^"]*)">(.*?)</h[1-6]>(.*?)(?=<h[1-6] id=|\Z)', re.S)
MIN_CONTENTS = 3
"""A page with fewer headings needs no list of them."""


@dataclass(slots=True)
class Page:
    """A page: its Markdown, and after rendering its HTML, headings and links."""

    name: str
    text: str
    folder: Path
    """What relative links start from."""
    title: str = ""
    body: str = ""
    headings: dict[str, str] = field(default_factory=dict)
    """Headings by their anchors."""
    contents: list[tuple[int, str]] = field(default_factory=list)
    """Level and anchor of the headings that the page's own contents list."""
    links: list[str] = field(default_factory=list)
    """Links to pages (`name` or `name#anchor`) and to pictures (`file:path`), to be checked when all are rendered."""


@dataclass(frozen=True, slots=True)
class Section:
    """A section of the menu."""

    title: str
    pages: list[str]
    prefix: str = ""
    """Pages whose names begin with this follow the listed ones."""
    fold: bool = False
    """Whether the sidebar shows the section closed, unless it has the current page."""


def slug(heading: str) -> str:
    """A heading's anchor as GitHub makes it, so that a link works there and on the site."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")


def highlighted(code: str, language: str, _: str) -> str:
    try:
        lexer = get_lexer_by_name(language)
    except ClassNotFound:
        return html.escape(code)
    return str(highlight(code, lexer, HtmlFormatter(nowrap=True)))


def markdown_parser() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": False, "highlight": highlighted}).enable(["table", "strikethrough"])


def plain_text(token: Token) -> str:
    return "".join(child.content for child in token.children or [] if child.type in ("text", "code_inline"))


def all_tokens(tokens: list[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        yield from all_tokens(token.children or [])


def render(page: Page, names: dict[Path, str]) -> None:
    """Fill in body, title, headings and links of a page; links between files become links between pages.

    Args:
        page: The page.
        names: The names of pages by the files they are made from.
    """
    markdown = markdown_parser()
    tokens = markdown.parse(page.text)
    for index, token in enumerate(tokens):
        if token.type == "heading_open":
            heading = plain_text(tokens[index + 1])
            anchor = slug(heading)
            while anchor in page.headings:
                anchor += "-1"
            page.headings[anchor] = heading
            if token.tag in CONTENTS_LEVELS:
                page.contents.append((int(token.tag[1]), anchor))
            token.attrSet("id", anchor)
            page.title = page.title or heading
    unlinked = False
    for token in all_tokens(tokens):
        if token.type == "link_open":
            target = page_link(str(token.attrGet("href")), page, names)
            unlinked = target is None
            token.attrs = {} if target is None else {"href": target}
        if token.type in ("link_open", "link_close") and unlinked:
            token.tag = "span"
        elif token.type == "image" and not str(token.attrGet("src")).startswith("data:"):
            page.links.append(f"file:{(page.folder / str(token.attrGet('src'))).resolve()}")
            token.attrSet("src", f"figures/{Path(str(token.attrGet('src'))).name}")
            token.attrSet("loading", "lazy")
            token.attrSet("class", "figure")
    body = str(markdown.renderer.render(tokens, markdown.options, {}))
    body = body.replace("<table>", '<div class="wide"><table>').replace("</table>", "</table></div>")
    page.body = re.sub(r'<img src="figures/[^>]*>', in_both_colours, body)


def in_both_colours(image: re.Match[str]) -> str:
    """An image and, if `NAME-dark` is a figure too, its dark twin; style sheets show one of them."""
    name = re.findall(r'src="figures/([^"]+)"', image[0])[0]
    twin = f"{Path(name).stem}-dark{Path(name).suffix}"
    if not (FIGURES / twin).is_file():
        return image[0]
    light = image[0].replace('class="figure"', 'class="in-light"')
    return light + light.replace(name, twin).replace("in-light", "in-dark")


def page_link(target: str, page: Page, names: dict[Path, str]) -> str | None:
    """The target of a link on the site; None for a file of the repository that is not a page, which is not linked."""
    if target.startswith(EXTERNAL):
        return target
    path, _, anchor = unquote(target).partition("#")
    file = (page.folder / path).resolve() if path else None
    if file is not None and file not in names and file.exists():
        return None
    name = page.name if file is None else names.get(file, f"missing:{path}")
    name, _, section = name.partition("#")
    anchor = anchor or section
    page.links.append(f"{name}#{anchor}" if anchor else name)
    return (f"{name}.html" if file else "") + (f"#{anchor}" if anchor else "")


def notebook_as_markdown(path: Path) -> str:
    parts = []
    for cell in json.loads(path.read_text("utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(_fenced("python", source))
        parts += [_output(output) for output in cell["outputs"]]
    return "\n\n".join(parts)


def _output(output: dict[str, Any]) -> str:
    data = output.get("data", {})
    if "image/png" in data:
        return f"![Output](data:image/png;base64,{''.join(data['image/png']).strip()})"
    text = "".join(output.get("text", data.get("text/plain", "")))
    return _fenced("text", text.rstrip())


def _fenced(kind: str, text: str) -> str:
    """A code block whose fence is longer than any inside it: the output of a cell may be Markdown itself."""
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{kind}\n{text}\n{fence}"


def broken_links(pages: dict[str, Page]) -> list[str]:
    """One message per broken link."""
    problems = []
    for page in pages.values():
        for link in page.links:
            if link.startswith("file:"):
                if not Path(link[5:]).is_file():
                    problems.append(f"{page.name}: there is no picture {Path(link[5:]).name}")
                continue
            name, _, anchor = link.partition("#")
            if name not in pages:
                problems.append(f"{page.name}: there is no page {name.removeprefix('missing:')}")
            elif anchor and anchor not in pages[name].headings:
                problems.append(f"{page.name}: {name} has no heading #{anchor}")
    return problems


def collect() -> tuple[dict[str, Page], list[Section]]:
    """All pages, and the sections of the menu."""
    nav = tomllib.loads((HERE / "nav.toml").read_text("utf-8"))
    files = {path.stem: path for path in sorted(HERE.glob("*.md"))}
    files |= {name: (HERE / path).resolve() for name, path in nav["elsewhere"].items()}
    pages = {name: Page(name, path.read_text("utf-8"), path.parent) for name, path in files.items()}
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        pages[f"notebook-{path.stem}"] = Page(f"notebook-{path.stem}", notebook_as_markdown(path), path.parent)
        files[f"notebook-{path.stem}"] = path
    for package, modules in nav["reference"].items():
        name = f"reference-{package}"
        pages[name] = Page(name, reference_page(package, modules), HERE)
    made = {"commands": commands_page(), **generated_pages()}
    pages |= {name: Page(name, text, HERE) for name, text in made.items()}
    for name, text in generated_sections().items():
        pages[name].text += f"\n\n{text}"
    names = {path.resolve(): name for name, path in files.items()} | SOURCES
    for page in pages.values():
        render(page, names)
    sections = [Section(**section) for section in nav["section"]]
    for section in sections:
        section.pages.extend(name for name in pages if section.prefix and name.startswith(section.prefix))
    listed = {name for section in sections for name in section.pages}
    if missing := sorted(listed - pages.keys()):
        raise SystemExit(f"docs: nav.toml lists pages that do not exist: {', '.join(missing)}")
    if unlisted := [name for name in pages if name not in listed]:
        sections.append(Section("More", unlisted))
    return pages, sections


def menu(current: Page, pages: dict[str, Page], sections: list[Section]) -> str:
    lines = []
    for section in sections:
        title = html.escape(section.title)
        is_open = " open" if current.name in section.pages else ""
        lines.append(f"<details{is_open}><summary>{title}</summary><ul>" if section.fold else f"<p>{title}</p><ul>")
        for name in section.pages:
            short = pages[name].title.partition(":")[0]
            mark = ' aria-current="page"' if name == current.name else ""
            lines.append(f'<li><a href="{name}.html"{mark}>{html.escape(short)}</a></li>')
        lines.append("</ul></details>" if section.fold else "</ul>")
    return "".join(lines)


def contents(page: Page) -> str:
    """The headings of a page as links, to stand beside it; empty for a short page."""
    if len(page.contents) < MIN_CONTENTS:
        return ""
    items = (
        f'<li class="level{level}"><a href="#{anchor}">{html.escape(page.headings[anchor])}</a></li>'
        for level, anchor in page.contents
    )
    return f'<nav class="contents" aria-label="On this page"><p>On this page</p><ul>{"".join(items)}</ul></nav>'


def previous_and_next(name: str, pages: dict[str, Page], sections: list[Section]) -> str:
    """Links to the pages before and after this one."""
    order = [other for section in sections for other in section.pages]
    index = order.index(name)
    links = [("← ", order[index - 1], "")] if index else []
    links += [("", order[index + 1], " →")] if index + 1 < len(order) else []
    return "".join(f'<a href="{to}.html">{left}{html.escape(pages[to].title)}{right}</a>' for left, to, right in links)


def search_index(pages: dict[str, Page]) -> str:
    """The text under every heading, as a script: a browser lets a page from disk load a script, but not JSON."""

    def plain(markup: str) -> str:
        return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", markup)).split())

    index = [
        {"to": f"{page.name}.html#{anchor}", "page": page.title, "heading": plain(heading), "text": plain(text)}
        for page in pages.values()
        for anchor, heading, text in SECTION.findall(page.body)
    ]
    return f"const SECTIONS = {json.dumps(index, ensure_ascii=False)};\n"


def fill(template: str, parts: dict[str, str]) -> str:
    """A template with {name} replaced by its parts; other braces, as in scripts, stay as they are."""
    return re.sub(r"\{(\w+)\}", lambda match: parts[match[1]], template)


def style_sheet() -> str:
    """The site's style sheet; its dark part counts where the system is dark or the reader has chosen dark."""
    light, code = (HtmlFormatter(style=style).get_style_defs("pre code") for style in ("default", "github-dark"))
    style, dark = ((HERE / "theme" / f"{name}.css").read_text("utf-8") for name in ("site", "dark"))
    by_system = f"@media (prefers-color-scheme: dark) {{\n:root:not([data-theme=light]) {{\n{dark}{code}\n}}\n}}\n"
    return f"{style}{light}\n{by_system}:root[data-theme=dark] {{\n{dark}{code}\n}}\n"


def build(out: Path) -> list[str]:
    """Write the site to a folder; if there are broken links, write nothing and return one message for each."""
    pages, sections = collect()
    if problems := broken_links(pages):
        return problems
    template = (HERE / "theme" / "page.html").read_text("utf-8")
    out.mkdir(parents=True, exist_ok=True)
    shutil.copytree(FIGURES, out / "figures", dirs_exist_ok=True)
    (out / "site.css").write_text(style_sheet(), "utf-8")
    scripts = "\n".join((HERE / "theme" / f"{name}.js").read_text("utf-8") for name in ("theme", "copy", "search"))
    (out / "site.js").write_text(search_index(pages) + scripts, "utf-8")
    kinds = {name: section.title for section in sections for name in section.pages}
    for page in pages.values():
        parts = {
            "title": html.escape(page.title),
            "name": page.name,
            "kind": html.escape(kinds[page.name]),
            "menu": menu(page, pages, sections),
            "body": page.body,
            "contents": contents(page),
            "ends": previous_and_next(page.name, pages, sections),
        }
        (out / f"{page.name}.html").write_text(fill(template, parts), "utf-8")
    return []


def main() -> int:
    parser = argparse.ArgumentParser(description="Build the documentation as a site.")
    parser.add_argument("--out", type=Path, default=Path("site"), help="the folder to write (default: site)")
    out: Path = parser.parse_args().out
    problems = build(out)
    for line in problems:
        print(f"docs: {line}", file=sys.stderr)
    if not problems:
        print(f"{len(list(out.glob('*.html')))} pages: {out / 'index.html'}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
