"""A browser, and one page of every kind. Without playwright, axe-core or chromium, what needs them is skipped."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(scope="session")
def browser() -> Iterator[object]:
    """Chromium of the system: playwright's own is not downloaded."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright, the extra browser")
    pytest.importorskip("axe_playwright_python", reason="needs axe-core, the extra browser")
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.skip("needs chromium: apt install chromium")
    with sync_api.sync_playwright() as running:
        started = running.chromium.launch(executable_path=program, args=list(FLAGS))
        yield started
        started.close()


@pytest.fixture(scope="session")
def page_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The page of a kind, made once."""
    from page_kinds import KINDS

    made: dict[str, Path] = {}

    def page(kind: str) -> Path:
        if kind not in made:
            made[kind] = KINDS[kind](tmp_path_factory.mktemp(kind))
        return made[kind]

    return page


@pytest.fixture(scope="session")
def screenshots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where pictures of the pages go: ORTHOCAL_SCREENSHOTS, or a folder that pytest takes away."""
    given = os.environ.get("ORTHOCAL_SCREENSHOTS")
    folder = Path(given) if given else tmp_path_factory.mktemp("screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    return folder
