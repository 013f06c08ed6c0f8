"""Take the picture that README and docs begin with: a run of a real judge in the viewer, with Chromium.

    python -m docs.screenshot malibu1.sqlite                   # the run's page
    python -m docs.screenshot malibu1.sqlite --unit p2/fitness # one of its units

`gallery.md` says how that run was made. Needs playwright and Pillow (extra `dev`), and Chromium.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import sys
import tempfile
from pathlib import Path
from urllib.parse import urlencode

from playwright.async_api import async_playwright

from docs.gallery import shrink
from parley.runs import RunFile
from parley.viewer.server import serve

OUT = Path(__file__).parent / "figures" / "hero.png"
SIZE = (1280, 860)
SETTLED = "!/comput(ing|ed)…|reading…|loading…|indexed/.test(document.body.innerText)"
"""Whether everything on the page has been computed."""
TIMEOUT_MS = 120_000


def find_unit(run: Path, part: str) -> str:
    """The first finished unit with this in its id."""
    with RunFile.open(run) as file:
        _, rows = file.rows(
            "SELECT id FROM units WHERE instr(id, ?) AND status = 'done' ORDER BY position LIMIT 1", [part]
        )
    if not rows:
        sys.exit(f"screenshot: {run} has no finished unit with '{part}' in its id")
    return str(rows[0][0])


async def take_screenshot(run: Path, unit: str | None, out: Path, *, dark: bool = False) -> None:
    """Write a PNG of a run's page, or of a unit's."""
    page_name = "unit" if unit else "run"
    query = urlencode({"run": run.name, **({"unit": unit} if unit else {})})
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(run, folder)  # so that the page shows a file name and not a path
        address: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        server = asyncio.create_task(serve(Path(folder), "127.0.0.1", 0, address.set_result))
        async with async_playwright() as playwright:
            chromium = shutil.which("chromium") or shutil.which("google-chrome")
            browser = await playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            page = await browser.new_page(
                viewport={"width": SIZE[0], "height": SIZE[1]},
                color_scheme="dark" if dark else "light",
                bypass_csp=True,  # the viewer's policy also forbids the expression that is waited for
            )
            await page.goto(f"{await address}{page_name}?{query}")
            await page.wait_for_load_state("networkidle", timeout=TIMEOUT_MS)
            await page.wait_for_function(SETTLED, timeout=TIMEOUT_MS)
            await page.screenshot(path=out)
            await browser.close()
        server.cancel()
    shrink(out)


def main() -> None:
    parser = argparse.ArgumentParser(description="Take the picture that README and docs begin with.")
    parser.add_argument("run", type=Path, help="a run file")
    parser.add_argument("--unit", metavar="PART", help="show a unit instead: part of its id")
    parser.add_argument("--dark", action="store_true", help="in dark colours")
    parser.add_argument("--out", type=Path, default=OUT, help="the file (default: docs/figures/hero.png)")
    parsed = parser.parse_args()
    unit = find_unit(parsed.run, parsed.unit) if parsed.unit else None
    asyncio.run(take_screenshot(parsed.run, unit, parsed.out, dark=parsed.dark))
    print(f"{parsed.out}: {parsed.out.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
