"""Take the screenshot in the README: a unit of a real run in the viewer, with Chromium.

    python -m docs.screenshot runs/malibu-smollm2-0ce2aeba.sqlite p2/fitness

The run is the one of the README's first command. Needs playwright and Pillow (extra `dev`), and Chromium.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import tempfile
from pathlib import Path
from urllib.parse import urlencode

from PIL import Image
from playwright.async_api import async_playwright

from parley.runs import RunFile
from parley.viewer.server import serve

OUT = Path(__file__).parent / "figures" / "viewer.png"


def find_unit(run: Path, part: str) -> str:
    with RunFile.open(run) as file:
        _, rows = file.rows("SELECT id FROM units WHERE id LIKE ?", [f"%{part}%"])
    return str(rows[0][0])


async def take_screenshot(run: Path, part: str, out: Path) -> None:
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    unit = find_unit(run, part)
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(run, folder)  # so that the page shows a file name and not a path
        address: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        server = asyncio.create_task(serve(Path(folder), "127.0.0.1", 0, address.set_result))
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            page = await browser.new_page(viewport={"width": 1280, "height": 860})
            await page.goto(f"{await address}unit?{urlencode({'run': run.name, 'unit': unit})}")
            await page.wait_for_load_state("networkidle")
            await page.screenshot(path=out)
            await browser.close()
        server.cancel()
    Image.open(out).convert("RGB").quantize(128).save(out, optimize=True)  # a third of the size, no visible change


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Take the screenshot in the README.")
    parser.add_argument("run", type=Path)
    parser.add_argument("unit", help="part of the unit's id")
    parser.add_argument("--out", type=Path, default=OUT)
    parsed = parser.parse_args()
    asyncio.run(take_screenshot(parsed.run, parsed.unit, parsed.out))
