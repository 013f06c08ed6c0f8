"""Take the picture that README and docs begin with: `python -m docs.screenshot` writes it to `docs/figures/`.

It is the page of the silent run of `parley view --example`, in light and in dark colours. Needs playwright and Pillow
(extra `dev`), and Chromium.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from pathlib import Path

from playwright.async_api import async_playwright

from docs.gallery import OUT, shrink
from parley.runs.example import example_runs
from parley.viewer.server import serve

SIZE = {"width": 1280, "height": 860}
SETTLED = "!/[Cc]omputing|[Ll]oading|Waiting for|indexed/.test(document.body.innerText)"
"""Whether everything on the page has been computed."""
TIMEOUT_MS = 120_000


async def take_screenshots(run: Path, out: Path) -> list[Path]:
    """Write PNGs of a run's page, and return their paths."""
    pictures = {"light": out / "hero.png", "dark": out / "hero-dark.png"}
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(run, folder)  # outside the example's folder, whose pages say that they are an example
        address: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        server = asyncio.create_task(serve(Path(folder), "127.0.0.1", 0, address.set_result))
        async with async_playwright() as playwright:
            chromium = shutil.which("chromium") or shutil.which("google-chrome")
            browser = await playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            for colours, picture in pictures.items():
                # The viewer's policy also forbids the expression that is waited for.
                page = await browser.new_page(viewport=SIZE, color_scheme=colours, bypass_csp=True)
                await page.goto(f"{await address}run?run={run.name}")
                await page.wait_for_load_state("networkidle", timeout=TIMEOUT_MS)
                await page.wait_for_function(SETTLED, timeout=TIMEOUT_MS)
                await page.screenshot(path=picture)
                shrink(picture)
            await browser.close()
        server.cancel()
    return list(pictures.values())


if __name__ == "__main__":
    for picture in asyncio.run(take_screenshots(example_runs()["silent"], OUT)):
        print(f"{picture}: {picture.stat().st_size / 1e3:.0f} kB")
