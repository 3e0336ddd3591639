"""The Chromium that browser tests drive: `$HFREG_CHROMIUM`, or the first known name that answers.

As a program it says by its exit status whether there is one: `.ci/run` asks before it installs one.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


def find() -> str | None:
    """The path of a browser that runs. Ubuntu's `chromium-browser` may be a stub that only asks for snap."""
    chosen = os.environ.get("HFREG_CHROMIUM")
    paths = (shutil.which(name) for name in ([chosen] if chosen else NAMES))
    return next((path for path in paths if path and _answers(path)), None)


def _answers(path: str) -> bool:
    try:
        done = subprocess.run([path, "--version"], capture_output=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0 and b"Chrom" in done.stdout


if __name__ == "__main__":
    sys.exit(None if find() else "no Chromium")
