"""The longest chain of a run beside the run's seconds."""

import re
import sqlite3
from pathlib import Path

import parley
from benchmarks.connections import chains


def test_the_longest_chain_is_set_beside_the_run(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    parley.run("malibu", suite="tiny", model="sim/any", out=path)
    with sqlite3.connect(path) as run:
        run.execute("UPDATE units SET started_at = 100, finished_at = 110")
        run.execute("UPDATE calls SET latency = 0")
        run.execute("UPDATE calls SET latency = 4.5 WHERE (unit, seq) IN (SELECT unit, seq FROM calls LIMIT 2)")
        longest = run.execute("SELECT max(s) FROM (SELECT sum(latency) s FROM calls GROUP BY unit)").fetchone()[0]

    line = chains(str(path))

    assert "in 10.0 s" in line
    assert f"waited {longest:.1f} s for replies: {longest / 10:.2f} of the run" in line
    assert re.match(r"\d+ chains, [\d,]+ calls", line)
