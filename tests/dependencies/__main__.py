"""See the package: `licences` and `audit`. Exit status: 0 nothing to mend, 1 something, 3 nobody could be asked."""

from __future__ import annotations

import argparse
import json
import sys

from tests.dependencies import audit, licences


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.dependencies")
    verbs = parser.add_subparsers(dest="verb", required=True)
    listing = verbs.add_parser("licences", help="of everything installed for Parley")
    listing.add_argument("--write", action="store_true", help="write docs/licences.md")
    listing.add_argument("--json", action="store_true")
    asking = verbs.add_parser("audit", help="known vulnerabilities of the pinned versions")
    asking.add_argument("--service", default=audit.SERVICE, help="another address of the OSV database")
    asking.add_argument("--json", action="store_true")
    parsed = parser.parse_args()
    return _licences(parsed) if parsed.verb == "licences" else _audit(parsed)


def _licences(parsed: argparse.Namespace) -> int:
    listed, missing = licences.packages()
    refused = [one for one in listed if not one.accepted]
    if parsed.json:
        print(json.dumps({"packages": [one._asdict() for one in listed], "not_installed": missing}))
    else:
        for one in listed:
            print(f"{one.name:<28.28} {one.licence:<26.26} {', '.join(one.wanted)[:24]}")
        print(f"{len(listed)} packages, {len(refused)} with a licence that is not on our list")
        if missing:
            print(f"not installed here, so not looked at: {', '.join(missing)}")
    if parsed.write:
        kept = licences.read_page() if licences.PAGE.exists() else {}
        elsewhere = [
            licences.Package(name, "", licence, tuple(wanted.split(", ")))
            for name, (licence, wanted) in kept.items()
            if name not in {one.name for one in listed}
        ]
        licences.PAGE.write_text(licences.page(sorted([*listed, *elsewhere])), "utf-8")
    return 1 if refused else 0


def _audit(parsed: argparse.Namespace) -> int:
    pinned = audit.pins(licences.ROOT / "constraints.txt")
    try:
        found = audit.advisories(pinned, parsed.service)
    except audit.NotAsked as error:
        print(f"NOT AUDITED: {error}. Nothing is known about these {len(pinned)} versions.", file=sys.stderr)
        return 3
    if parsed.json:
        print(json.dumps(found))
    else:
        for name, ids in found.items():
            print(f"{name} {pinned[name]}: {', '.join(ids)}")
        print(f"{len(pinned)} versions asked about, {len(found)} with advisories")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
