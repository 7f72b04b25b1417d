"""A real Chromium for tests, benchmarks and screenshots; where there is none, the reason."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser

NAMES = ("chromium", "chromium-browser", "google-chrome")


def found() -> str | None:
    """The machine's Chromium, or the one that TRIMTAB_CHROMIUM names."""
    return os.environ.get("TRIMTAB_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


def missing() -> str:
    """Why no browser can be driven; empty where one can."""
    try:
        import playwright.sync_api  # noqa: F401
    except ImportError:
        return "playwright is not installed"
    return "" if found() else "there is no Chromium: `make browser` installs one"


@contextmanager
def chromium() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found(), args=["--no-sandbox", "--disable-gpu"])
        try:
            yield browser
        finally:
            browser.close()
