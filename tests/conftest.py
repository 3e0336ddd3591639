"""What all tests have: the browser, for those marked `browser`."""

from __future__ import annotations

import os

import pytest

import browser


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of a Chromium. Where there is none the test is skipped, and in CI it fails."""
    path = browser.find()
    if path is None:
        missing = "no Chromium: install it, or name one in $HFREG_CHROMIUM"
        if os.environ.get("CI"):
            pytest.fail(missing)
        pytest.skip(missing)
    return path
