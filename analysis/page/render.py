"""A report as files: one self-contained HTML page, tables as CSV, Markdown and LaTeX, and figures.

Names of models and labels are untrusted text: everything is escaped, and the page's own content security policy
forbids it to load or run anything.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence, Sized
from functools import partial
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Literal
from urllib.parse import quote

import pandas as pd

from parley.analysis.page.figures import FORMATS, as_svg, save
from parley.analysis.page.forest_figure import draw_forest
from parley.analysis.page.methods import methods
from parley.analysis.page.report import SIMULATED, Figure, Report, Table
from parley.analysis.say import Forest, format_cell, format_cells, headline
from parley.base.files import new_files, refuse
from parley.base.text import markdown_cell, plural, without_tags

Figures = Literal["main", "all"]
PAGE_ROWS = 60
"""Rows of a folded table that a page shows; the CSV file has all of them."""


PAGE = "report.html"
OURS = '<meta name="generator" content="Parley: {}">'
"""Marks a page as one that may be written again by a report on the same runs."""


def write(
    report: Report,
    folder: Path,
    *,
    figures: Figures = "main",
) -> Path:
    """Write a report into a folder: `report.html`, `tables/` and `figures/`.

    The page comes last, so that an unfinished report has none. Folders with other contents or another run's report are
    refused; other files in an earlier report's folder stay.

    Args:
        report: The report.
        folder: The folder, created if necessary.
        figures: The forest plot of the main question as SVG, or all figures as SVG, PDF and PNG, which takes longer. A
            report without forest plots has all its figures.

    Returns:
        The page's path.
    """
    ours, about = partial(is_report, report=report), _about(report)
    refuse(folder, ours, f" and is not the folder of a report on {about}, or has links: choose another one with --out")
    with new_files(folder, ours) as part:
        _write(report, part, figures)
    return folder / PAGE


def is_report(folder: Path, report: Report) -> bool:
    """Whether a folder has an earlier report on the same runs, or nothing; not if it is a link or has linked folders.

    Args:
        folder: The folder.
        report: The report.
    """
    if any(path.is_symlink() for path in (folder, folder / "tables", folder / "figures")):
        return False
    try:
        with (folder / PAGE).open(encoding="utf-8") as page:
            return OURS.format(escape(_about(report))) in page.read(100_000)
    except FileNotFoundError:
        return folder.is_dir() and not any(folder.iterdir())
    except (OSError, UnicodeDecodeError):
        return False


def _about(report: Report) -> str:
    """The subject, or the runs by name and study: reports on others would mix their tables with this one's."""
    return report.subject or ", ".join(f"{run['file']} ({run.get('study')})" for run in report.runs) or report.title


def _write(report: Report, folder: Path, figures: Figures) -> None:
    for part in ("tables", "figures"):
        (folder / part).mkdir()
    for table in report.tables:
        target = folder / "tables" / table.name
        target.with_suffix(".csv").write_text(table.frame.to_csv(index=False), "utf-8")
        target.with_suffix(".md").write_text(markdown(table, report.simulated), "utf-8")
        target.with_suffix(".tex").write_text(latex(table, report.simulated), "utf-8")
    kinds = FORMATS if figures == "all" else FORMATS[:1]  # eight figures in three formats take two thirds of the time
    stamp = SIMULATED if report.simulated else ""
    pictures: dict[str, bytes] = {}
    for forest in report.forests if figures == "all" else report.forests[:1]:
        svg, *_ = save(draw_forest(forest), folder / "figures" / f"forest-{forest.name}", kinds, stamp)
        pictures[f"{forest.name} double"] = svg.read_bytes()
    if report.forests:
        pictures[f"{report.forests[0].name} single"] = as_svg(draw_forest(report.forests[0], "single"), stamp)
    for figure in report.figures if figures == "all" or not report.forests else ():
        svg, *_ = save(figure.draw(), folder / "figures" / figure.name, kinds, stamp)
        pictures[figure.name] = svg.read_bytes()
    (folder / PAGE).write_text(html(report, pictures), "utf-8")


def markdown(table: Table, warning: str = "") -> str:
    """The table in Markdown, with its title and note.

    Args:
        table: The table.
        warning: A warning to keep with the table, such as that a model is simulated.
    """
    frame = table.view()
    lines = [f"| {' | '.join(markdown_cell(name) for name in frame.columns)} |", f"|{'---|' * len(frame.columns)}"]
    lines += [f"| {' | '.join(map(markdown_cell, row))} |" for row in format_cells(frame)]
    notes = "".join(f"\n{note}\n" for note in (markdown_cell(warning), without_tags(table.note)) if note)
    return f"**{without_tags(table.title)}**\n\n" + "\n".join(lines) + f"\n{notes}"


_TEX = str.maketrans(
    {sign: f"\\{sign}" for sign in "&%$#_{}"}
    | {"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\textquotedbl{}"}
    | {"~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}"}
    | {"–": "--", "χ": r"$\chi$", "²": "$^2$", "α": r"$\alpha$", "κ": r"$\kappa$", "±": r"$\pm$", "−": "$-$"}
    | {"∞": r"$\infty$", "≤": r"$\le$"}
)


def latex(table: Table, warning: str = "") -> str:
    """The table as a LaTeX `tabular` with the rules of the booktabs package.

    Args:
        table: The table.
        warning: A warning to keep with the table, as its last row.
    """
    frame = table.view()
    numeric = [pd.api.types.is_numeric_dtype(frame[name]) for name in frame.columns]
    rows = [[str(name) for name in frame.columns], *format_cells(frame)]
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
            *([rf"\multicolumn{{{len(numeric)}}}{{l}}{{{warning.translate(_TEX)}}} \\"] if warning else []),
            r"\end{tabular}",
            "",
        ]
    )


def html(report: Report, pictures: Mapping[str, bytes]) -> str:
    """The page: the cautions, the headline, the plot of the main question, the sentences; tables are folded.

    On a paper's page tables are open, each before its figures.

    Args:
        report: What to show.
        pictures: SVG files by name: of figures, and of forest plots at each width ("differences single").
    """
    package = files("parley.analysis.page")
    page = Template(package.joinpath("report.html").read_text("utf-8"))
    first, *others = report.forests or (None,)
    figures = [_forest(report, forest, pictures) for forest in others if forest and f"{forest.name} double" in pictures]
    drawn = [(each.table, _figure(report, each, pictures)) for each in report.figures if each.name in pictures]
    of_paper = not report.forests and all(table.paper for table in report.tables)
    figures += [text for _, text in drawn if not of_paper]
    listed = "".join(
        _table(table, " open" * of_paper) + "".join(text for name, text in drawn if of_paper and name == table.name)
        for table in report.tables
        if len(table.frame)
    )
    tables = f'<section class="tables"><h2>Tables{" and figures" * of_paper}</h2>\n{listed}\n</section>'
    return page.substitute(
        title=escape(report.title),
        ours=OURS.format(escape(_about(report))),
        style=package.joinpath("static", "page.css").read_text("utf-8"),
        study=f'<p class="study">{escape(report.title)}</p>' if report.headline else "",
        heading=f"<h1>{escape(report.headline.text if report.headline else report.title)}</h1>",
        cautions="".join(f'<p class="caution">{escape(line)}</p>' for line in report.cautions),
        main=_forest(report, first, pictures) if first and f"{first.name} double" in pictures else "",
        words=_list(report.sentences),
        figures=tables if of_paper else _section("Figures", "".join(figures), figures),
        methods=_section("Methods", "".join(f"<p>{escape(part)}</p>" for part in methods(report)), report.runs),
        tables="" if of_paper else tables,
        made="".join(_provenance(report)),
    )


def _section(title: str, body: str, content: Sized) -> str:
    return f"<h2>{title}</h2>\n{body}" if content else ""


def _list(lines: Sequence[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in lines)}</ul>" if lines else ""


def _forest(report: Report, forest: Forest, pictures: Mapping[str, bytes]) -> str:
    """The plot; a narrow screen gets it at the width of a single column, if it was drawn so."""
    narrow = pictures.get(f"{forest.name} single")
    source = f'<source media="(max-width: 640px)" srcset="{_data(narrow)}">' if narrow else ""
    image = f'<img alt="{escape(headline(forest).text)}" src="{_data(pictures[f"{forest.name} double"])}">'
    table = next((table for table in report.tables if table.name == forest.table), None)
    link = f"<figcaption>{_csv_link(table)}</figcaption>" if table else ""
    return f'<figure id="forest-{escape(forest.name)}"><picture>{source}{image}</picture>{link}</figure>'


def _figure(report: Report, figure: Figure, pictures: Mapping[str, bytes]) -> str:
    table = next(table for table in report.tables if table.name == figure.table)
    return (
        f'<figure id="{escape(figure.name)}"><img alt="{escape(figure.caption)}" '
        f'src="{_data(pictures[figure.name])}"><figcaption>{escape(figure.caption)} '
        f"{_csv_link(table)}</figcaption></figure>"
    )


def _data(picture: bytes) -> str:
    return f"data:image/svg+xml;base64,{base64.b64encode(picture).decode()}"


def _csv_link(table: Table) -> str:
    data = quote(table.frame.to_csv(index=False))
    name, rows = escape(table.name), plural(len(table.frame), "row")
    return f'<a download="{name}.csv" href="data:text/csv;charset=utf-8,{data}">data ({rows}, CSV)</a>'


def _table(table: Table, is_open: str) -> str:
    frame = table.view()
    head = "".join(f"<th>{escape(str(name)).replace('_', ' ')}</th>" for name in frame.columns)
    rows = []
    shown = frame if is_open else frame.head(PAGE_ROWS)
    for row, texts in zip(shown.itertuples(index=False), format_cells(shown), strict=True):
        cells = "".join(
            f'<td class="{"number" if isinstance(value, int | float) else "text"}">{escape(text)}</td>'
            for value, text in zip(row, texts, strict=True)
        )
        rows.append(f"<tr>{cells}</tr>")
    more = f"<p>{plural(len(frame) - len(shown), 'more row')} in the CSV file.</p>" if len(frame) > len(shown) else ""
    note = f"<p>{escape(table.note)}</p>" if table.note else ""
    return (
        f'<details id="table-{escape(table.name)}"{is_open}><summary>{escape(table.title)}</summary>'
        f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'
        f"{more}{note}<p>{_csv_link(table)}</p></details>"
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
