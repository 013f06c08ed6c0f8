"""The commands `licences` and `audit`. Exit status: 0 no problem, 1 a problem, 3 the database cannot be reached."""

from __future__ import annotations

import argparse
import json
import sys

from parley.base.text import plural
from tests.dependencies import audit, licences


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.dependencies")
    commands = parser.add_subparsers(dest="command", required=True)
    licences_parser = commands.add_parser("licences", help="the licences of all installed dependencies")
    licences_parser.add_argument("--write", action="store_true", help="write docs/licences.md")
    licences_parser.add_argument("--json", action="store_true")
    audit_parser = commands.add_parser("audit", help="known vulnerabilities of the pinned versions")
    audit_parser.add_argument("--service", default=audit.SERVICE, help="address of the OSV database")
    audit_parser.add_argument("--json", action="store_true")
    parsed = parser.parse_args()
    return _licences(parsed) if parsed.command == "licences" else _audit(parsed)


def _licences(parsed: argparse.Namespace) -> int:
    packages, missing = licences.installed_packages()
    refused = [package for package in packages if not package.accepted]
    if parsed.json:
        print(json.dumps({"packages": [package._asdict() for package in packages], "not_installed": missing}))
    else:
        for package in packages:
            print(f"{package.name:<28.28} {package.licence:<26.26} {', '.join(package.extras)[:24]}")
        print(f"{plural(len(packages), 'package')}, {len(refused)} with a licence that is not accepted")
        if missing:
            print(f"not installed, so not checked: {', '.join(missing)}")
    if parsed.write:
        listed = licences.read_page() if licences.PAGE.exists() else {}
        installed = {package.name for package in packages}
        elsewhere = [  # packages of other platforms stay on the page
            licences.Package(name, "", licence, tuple(extras.split(", ")))
            for name, (licence, extras) in listed.items()
            if name not in installed
        ]
        licences.PAGE.write_text(licences.render_page(sorted([*packages, *elsewhere])), "utf-8")
    return 1 if refused else 0


def _audit(parsed: argparse.Namespace) -> int:
    pinned = audit.pins(licences.ROOT / "constraints.txt")
    try:
        advisories = audit.advisories(pinned, parsed.service)
    except audit.AuditUnavailable as error:
        print(f"NOT AUDITED: {error}; {plural(len(pinned), 'version')} not checked", file=sys.stderr)
        return 3
    if parsed.json:
        print(json.dumps(advisories))
    else:
        for name, ids in advisories.items():
            print(f"{name} {pinned[name]}: {', '.join(ids)}")
        print(f"{plural(len(pinned), 'version')} checked, {len(advisories)} with advisories")
    return 1 if advisories else 0


if __name__ == "__main__":
    sys.exit(main())
