"""A check's result for machines: JUnit XML, GitHub's annotations and job summary, and plain values for JSON.

Names of models and lines are untrusted text, so everything is escaped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

from parley.analysis.gate.changes import clusters_of
from parley.analysis.gate.check import CheckResult, Finding
from parley.analysis.reporting.report import json_values
from parley.base.text import markdown_cell, visible

SUITE = "parley check"
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot contain, not even as references."""
SIGNS = {"holds": "✅", "broken": "❌", "changed": "🔁", "undecided": "❔"}


def as_values(result: CheckResult, status: int) -> dict[str, Any]:
    """The result as plain values.

    Args:
        result: The result.
        status: The exit status that the check ends with.
    """
    findings = [
        {
            **{name: getattr(found, name) for name in ("name", "kind")},
            "line_id": found.line.name,
            "outcome": found.outcome,
            **{name: getattr(found.line, name) for name in ("estimate", "low", "high", "p")},
            "p_corrected": found.line.p_adjusted,
            "clusters": clusters_of(found.line),
            **{name: getattr(found, name) for name in ("more", "message")},
        }
        for found in result.findings
    ]
    values: dict[str, Any] = {"model": result.model, "outcome": result.outcome, "status": status}
    return values | {"findings": json_values(findings)}


def junit(result: CheckResult) -> str:
    """The result as JUnit XML: broken is a failure, undecided and changed are skipped with a message.

    A test case is named by its requirement alone, so that Jenkins and GitLab find it again in the next report.
    """
    broken = sum(finding.outcome == "broken" for finding in result.findings)
    skipped = sum(finding.outcome in ("undecided", "changed") for finding in result.findings)
    counts = {"tests": str(len(result.findings)), "failures": str(broken), "errors": "0", "skipped": str(skipped)}
    root = ElementTree.Element("testsuites", {"name": SUITE, **counts, "time": "0"})
    suite = ElementTree.SubElement(root, "testsuite", {"name": SUITE, **counts, "time": "0"})
    properties = ElementTree.SubElement(suite, "properties")
    ElementTree.SubElement(properties, "property", {"name": "model", "value": _xml(result.model)})
    for finding in result.findings:
        case = ElementTree.SubElement(
            suite, "testcase", {"classname": f"{SUITE}.{finding.kind}", "name": _xml(finding.name), "time": "0"}
        )
        said = {"message": _xml(f"{finding.outcome}: {finding.message}")}
        if finding.outcome == "broken":
            ElementTree.SubElement(case, "failure", {**said, "type": "broken"}).text = _xml(finding.message)
        elif finding.outcome != "holds":
            ElementTree.SubElement(case, "skipped", said)
    ElementTree.indent(root, " ")
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _xml(text: str) -> str:
    return _NOT_XML.sub("�", visible(text))


def github_annotations(result: CheckResult) -> Iterator[str]:
    """GitHub's workflow commands: an error for what is broken, a warning for what is undecided or changed."""
    for finding in result.findings:
        if finding.outcome != "holds":
            level = "error" if finding.outcome == "broken" else "warning"
            title = _command(f"{finding.outcome}: {finding.name}").replace(":", "%3A").replace(",", "%2C")
            yield f"::{level} title={title}::{_command(f'{result.model}: {finding.message}')}"


def _command(text: str) -> str:
    """The text as GitHub's runner reads it: a line break would begin another command."""
    return visible(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def summary(result: CheckResult) -> str:
    """The result in Markdown, for GitHub's job summary."""
    rows = "\n".join(_row(finding) for finding in result.findings)
    title = f"### parley check: {result.outcome} {SIGNS[result.outcome]} · {_cell(result.model)}"
    return f"{title}\n\n| | requirement | found |\n|---|---|---|\n{rows}\n"


def _row(finding: Finding) -> str:
    return f"| {SIGNS[finding.outcome]} {finding.outcome} | {_cell(finding.name)} | {_cell(finding.message)} |"


def _cell(text: str) -> str:
    return markdown_cell(visible(text))
