"""Take the pictures of README and docs: `python -m docs.screenshot` writes them to `docs/figures/`.

They are the page of the silent run of `parley view --example`, and its report, in light and in dark colours. Needs
playwright and Pillow (extra `dev`), and Chromium.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from itertools import product
from pathlib import Path

from playwright.async_api import async_playwright

from docs.gallery import OUT, shrink
from parley.analysis.page.render import write
from parley.reports import make_report
from parley.runs.example import example_runs
from parley.viewer.server import serve

SIZE = {"width": 1280, "height": 860}
SETTLED = "!/being computed|[Ll]oading|Waiting for|indexed/.test(document.body.innerText)"
"""Whether everything on the page has been computed."""
TIMEOUT_MS = 120_000


async def take_screenshots(run: Path, out: Path) -> list[Path]:
    """Write PNGs of a run's page and of its report, and return their paths."""
    pictures: list[Path] = []
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(run, folder)  # outside the example's folder, whose pages say that they are an example
        address: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        server = asyncio.create_task(serve(Path(folder), "127.0.0.1", 0, address.set_result))
        async with async_playwright() as playwright:
            chromium = shutil.which("chromium") or shutil.which("google-chrome")
            browser = await playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            report = write(make_report([run]), Path(folder) / "report")
            pages = {"hero": f"{await address}run?run={run.name}", "report": report.absolute().as_uri()}
            for (name, link), colours in product(pages.items(), ("light", "dark")):
                # The viewer's policy also forbids the expression that is waited for.
                page = await browser.new_page(viewport=SIZE, color_scheme=colours, bypass_csp=True)
                await page.goto(link)
                await page.wait_for_load_state("networkidle", timeout=TIMEOUT_MS)
                await page.wait_for_function(SETTLED, timeout=TIMEOUT_MS)
                pictures.append(out / f"{name}{'-dark' * (colours == 'dark')}.png")
                await page.screenshot(path=pictures[-1])
                shrink(pictures[-1])
            await browser.close()
        server.cancel()
    return pictures


if __name__ == "__main__":
    for picture in asyncio.run(take_screenshots(example_runs()["silent"], OUT)):
        print(f"{picture}: {picture.stat().st_size / 1e3:.0f} kB")
