"""`python -m tests.golden`: make every case again and compare it with what is recorded."""

from __future__ import annotations

import argparse
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from typing import Any

for library in ("OMP", "OPENBLAS", "MKL"):  # before NumPy is loaded: the processes would wait for each other's threads
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

from tests.golden.cases import CASES  # noqa: E402
from tests.golden.comparing import KINDS, compare, described  # noqa: E402
from tests.golden.files import path_of, read, write  # noqa: E402
from tests.golden.making import make  # noqa: E402

MOST_LINES = 5


def timed(name: str) -> tuple[dict[str, Any], float]:
    """A case made again, and the CPU seconds that it took."""
    began = time.process_time()
    made = make(next(case for case in CASES if case.name == name))
    return made, time.process_time() - began


def main() -> int:
    known = [case.name for case in CASES]
    parser = argparse.ArgumentParser(prog="python -m tests.golden", description=__doc__)
    parser.add_argument("name", nargs="*", help=f"only these cases (default: all): {', '.join(known)}")
    parser.add_argument("--record", action="store_true", help="write what is found, instead of comparing it")
    parser.add_argument("--all", action="store_true", help=f"list every difference, not {MOST_LINES} of each kind")
    parser.add_argument("--jobs", type=int, default=1, help="processes; they do not change the results (default: 1)")
    asked = parser.parse_args()
    names = asked.name or known
    if unknown := [name for name in names if name not in known]:
        parser.error(f"there is no case {unknown[0]}: choose from {', '.join(known)}")
    print(f"{'':24}" + "".join(f"{kind:>9}" for kind in KINDS) + f"{'CPU s':>9}", flush=True)
    details: list[str] = []
    with ProcessPoolExecutor(asked.jobs) as pool:
        for name, (made, seconds) in zip(names, pool.map(timed, names), strict=True):
            comparison = compare(read(name) if path_of(name).exists() else {}, made)
            counts = comparison.counts()
            print(f"{name:24}" + "".join(f"{counts[kind]:>9,}" for kind in KINDS) + f"{seconds:>9.1f}", flush=True)
            if comparison.differences:
                details += [f"\n{name}", *described(comparison, None if asked.all else MOST_LINES)]
            if asked.record:
                write(name, made)
    if not details:
        return 0
    print("\n".join(details))
    if asked.record:
        print("\nrecorded: `git diff tests/golden/results` shows what changed; name it in the commit that changes it")
        return 0
    print("\nIf this is meant: python -m tests.golden --record NAME…, and name the change in the commit.")
    return 1


if __name__ == "__main__":
    sys.exit(main())
