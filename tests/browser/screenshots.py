"""Makes a picture of every page, light and dark, wide and narrow: screenshots.py FOLDER."""

import re
import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from all_pages import addresses, fill
from windlass_server import Server

VIEWPORTS = {"wide": {"width": 1280, "height": 800}, "390": {"width": 390, "height": 844}}


def file_name(address, size, colours):
    words = re.sub(r"[^a-z0-9]+", "-", address.lower()).strip("-") or "first"
    return f"{words[:80]}.{size}.{colours}.png"


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: scripts/screenshots FOLDER")
    folder = Path(sys.argv[1]).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary, sync_playwright() as playwright:
        server = Server(Path(temporary) / "server")
        server.start()
        numbers = fill(server)
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"))
        for size, viewport in VIEWPORTS.items():
            for colours in ("light", "dark"):
                context = browser.new_context(
                    viewport=viewport, color_scheme=colours, base_url=server.origin, timezone_id="Europe/Berlin",
                )
                page = context.new_page()
                page.goto(server.link())
                for address in addresses(numbers):
                    page.goto(address)
                    path = folder / file_name(address, size, colours)
                    page.screenshot(path=path, full_page=True)
                    print(path)
                context.close()
        browser.close()
        server.stop()


main()
