"""A report as files: one self-contained HTML page, tables as CSV, Markdown and LaTeX, figures as SVG, PDF and PNG.

Names of models and labels are untrusted text: everything is escaped, and the page's own content security policy
forbids it to load or run anything.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sized
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from urllib.parse import quote

import pandas as pd

from parley.analysis.reporting.figures import save
from parley.analysis.reporting.report import Report, Table, format_cell
from parley.analysis.reporting.text import plural

PAGE_ROWS = 60
"""Rows of a table that a page shows; the CSV file has all of them."""


def write(report: Report, folder: Path) -> Path:
    """Write a report into a folder: `report.html`, `tables/` and `figures/`.

    The page is written last, so that an unfinished report has none.

    Args:
        report: What to write.
        folder: Where; it is created if need be.

    Returns:
        The page's path.
    """
    for part in ("tables", "figures"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    for table in report.tables:
        target = folder / "tables" / table.name
        target.with_suffix(".csv").write_text(table.frame.to_csv(index=False), "utf-8")
        target.with_suffix(".md").write_text(markdown(table), "utf-8")
        target.with_suffix(".tex").write_text(latex(table), "utf-8")
    pictures: dict[str, bytes] = {}
    for figure in report.figures:
        svg, *_ = save(figure.draw(), folder / "figures" / figure.name)
        pictures[figure.name] = svg.read_bytes()
    page = folder / "report.html"
    page.write_text(html(report, pictures), "utf-8")
    return page


def markdown(table: Table) -> str:
    """The table in Markdown, with its title and note."""
    frame = table.view()
    lines = [f"| {' | '.join(_markdown_cell(name) for name in frame.columns)} |", f"|{'---|' * len(frame.columns)}"]
    for row in frame.itertuples(index=False):
        lines.append(f"| {' | '.join(_markdown_cell(format_cell(value)) for value in row)} |")
    note = f"\n{table.note}\n" if table.note else ""
    return f"**{table.title}**\n\n" + "\n".join(lines) + f"\n{note}"


def _markdown_cell(text: str) -> str:
    return " ".join(text.replace("\\", r"\\").replace("|", r"\|").split())


_TEX = str.maketrans(
    {sign: f"\\{sign}" for sign in "&%$#_{}"}
    | {"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\textquotedbl{}"}
    | {"~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}"}
    | {"–": "--", "χ": r"$\chi$", "²": "$^2$", "α": r"$\alpha$", "κ": r"$\kappa$", "±": r"$\pm$", "−": "$-$"}
    | {"∞": r"$\infty$", "≤": r"$\le$"}
)


def latex(table: Table) -> str:
    """The table as a LaTeX `tabular` with the rules of the booktabs package."""
    frame = table.view()
    numeric = [pd.api.types.is_numeric_dtype(frame[name]) for name in frame.columns]
    body = [[format_cell(value) for value in row] for row in frame.itertuples(index=False)]
    rows = [[str(name) for name in frame.columns], *body]
    text = [" & ".join(cell.translate(_TEX) for cell in row) + r" \\" for row in rows]
    return "\n".join(
        [
            f"% {' '.join(table.title.split())}. Needs \\usepackage{{booktabs}}.",
            rf"\begin{{tabular}}{{{''.join('r' if is_numeric else 'l' for is_numeric in numeric)}}}",
            r"\toprule",
            text[0],
            r"\midrule",
            *text[1:],
            r"\bottomrule",
            r"\end{tabular}",
            "",
        ]
    )


def html(report: Report, pictures: Mapping[str, bytes]) -> str:
    """The page: sentences first, then figures with their data, tables, and the runs that it was made from.

    Args:
        report: What to show.
        pictures: SVG files of the figures, by name.
    """
    page = Template(files("parley.analysis.reporting").joinpath("report.html").read_text("utf-8"))
    return page.substitute(
        title=escape(report.title),
        cautions="".join(f'<p class="caution">{escape(line)}</p>' for line in report.cautions),
        words=_section(
            "In words", f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in report.words)}</ul>", report.words
        ),
        figures=_section("Figures", "".join(_figures(report, pictures)), report.figures),
        tables="".join(_table(table) for table in report.tables if len(table.frame)),
        made="".join(_provenance(report)),
    )


def _section(title: str, body: str, content: Sized) -> str:
    return f"<h2>{title}</h2>\n{body}" if content else ""


def _figures(report: Report, pictures: Mapping[str, bytes]) -> Iterator[str]:
    for figure in report.figures:
        data = base64.b64encode(pictures[figure.name]).decode()
        table = next(table for table in report.tables if table.name == figure.table)
        yield (
            f'<figure id="{escape(figure.name)}"><img alt="{escape(figure.caption)}" '
            f'src="data:image/svg+xml;base64,{data}"><figcaption>{escape(figure.caption)} '
            f"{_csv_link(table)}</figcaption></figure>"
        )


def _csv_link(table: Table) -> str:
    data = quote(table.frame.to_csv(index=False))
    name, rows = escape(table.name), plural(len(table.frame), "row")
    return f'<a download="{name}.csv" href="data:text/csv;charset=utf-8,{data}">data ({rows}, CSV)</a>'


def _table(table: Table) -> str:
    frame = table.view()
    head = "".join(f"<th>{escape(str(name)).replace('_', ' ')}</th>" for name in frame.columns)
    rows = []
    for row in frame.head(PAGE_ROWS).itertuples(index=False):
        cells = "".join(
            f'<td class="{"number" if isinstance(value, int | float) else "text"}">{escape(format_cell(value))}</td>'
            for value in row
        )
        rows.append(f"<tr>{cells}</tr>")
    more = f"<p>{plural(len(frame) - PAGE_ROWS, 'more row')} in the CSV file.</p>" if len(frame) > PAGE_ROWS else ""
    note = f"<p>{escape(table.note)}</p>" if table.note else ""
    return (
        f'<section id="table-{escape(table.name)}"><h3>{escape(table.title)}</h3>'
        f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'
        f"{more}{note}<p>{_csv_link(table)}</p></section>"
    )


def _provenance(report: Report) -> Iterator[str]:
    for run in report.runs:
        rows = "".join(
            f"<tr><th>{escape(str(key))}</th><td>{escape(_flat(value))}</td></tr>" for key, value in run.items()
        )
        yield f"<table>{rows}</table>"
    settings = ", ".join(f"{key} {value}" for key, value in report.settings.items())
    if settings:
        yield f"<p>Settings: {escape(settings)}.</p>"


def _flat(value: object) -> str:
    if isinstance(value, dict):
        return "; ".join(f"{key}: {_flat(inner)}" for key, inner in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_flat, value))
    return format_cell(value)
