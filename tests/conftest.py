"""In CI nothing is skipped for want of something that can be installed: `.ci/run` installs it."""

from __future__ import annotations

import os
from collections.abc import Generator

import pytest

MAY_BE_MISSING = ("needs PyTorch", "this processor lacks", "this machine is")
"""What the reason of a skip may say in CI: PyTorch is large, and a processor cannot be installed."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.skipped and os.environ.get("CI") and isinstance(report.longrepr, tuple):
        reason = report.longrepr[2].removeprefix("Skipped: ")
        if not reason.startswith(MAY_BE_MISSING):
            report.outcome, report.longrepr = "failed", f"skipped in CI: {reason}"
    return report
