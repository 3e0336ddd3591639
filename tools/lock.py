"""Lock the requirements (`make lock`): every file of every package by its hash, and no address.

`requirements/base.txt` is what the base install needs, `build.txt` adds the extra `build`, `dev.txt` the group `dev`;
each is constrained by the one before it, so that all three fit one environment. `package.txt` builds the wheel.
`models.txt` holds packages that are installed without their dependencies, so nothing is resolved for it.

Arguments go to pip-compile: `--upgrade`, or `--upgrade-package NAME`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = Path("requirements")
HEADER = "# Written by `make lock`: do not edit.\n"
COMPILE = [
    "piptools",
    "compile",
    "--quiet",
    "--no-config",
    "--no-header",
    "--generate-hashes",
    "--allow-unsafe",
    "--strip-extras",
    "--no-emit-index-url",
    "--no-emit-find-links",
    "--no-emit-trusted-host",
    "--no-emit-options",
    "--annotation-style=line",
]
GROUPS = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]


def group(name: str) -> Iterator[str]:
    for entry in GROUPS[name]:
        if isinstance(entry, str):
            yield entry
        else:
            yield from group(entry["include-group"])


def python(*arguments: str | Path, stdin: str = "") -> str:
    command = [sys.executable, "-m", *map(str, arguments)]
    # Only the index itself: a machine's own links and mirrors have no place in a lock file.
    environment = {**os.environ, "PIP_CONFIG_FILE": os.devnull, "PIP_FIND_LINKS": ""}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, input=stdin, text=True, check=True, stdout=subprocess.PIPE
    )
    return done.stdout


def lock(name: str, *sources: str, below: str | None = None, stdin: str = "") -> None:
    print(f"locking {name}", flush=True)
    file = FOLDER / f"{name}.txt"
    constraint = ["--constraint", FOLDER / f"{below}.txt"] if below else []
    python(*COMPILE, *sys.argv[1:], *constraint, "--output-file", file, *sources, stdin=stdin)
    (ROOT / file).write_text(HEADER + (ROOT / file).read_text())


def lock_without_dependencies(name: str) -> None:
    print(f"locking {name}", flush=True)
    options = ["--dry-run", "--ignore-installed", "--ignore-requires-python", "--no-deps", "--quiet", "--report", "-"]
    installs = json.loads(python("pip", "install", *options, *group(name)))["install"]
    pins = [
        f"{item['metadata']['name']}=={item['metadata']['version']} \\\n"
        f"    --hash=sha256:{item['download_info']['archive_info']['hashes']['sha256']}\n"
        for item in installs
    ]
    (ROOT / FOLDER / f"{name}.txt").write_text(HEADER + "".join(sorted(pins, key=str.lower)))


if __name__ == "__main__":
    lock("base", "pyproject.toml")
    lock("build", "pyproject.toml", "--extra=build", below="base")
    lock("dev", "pyproject.toml", "--extra=build", "-", below="build", stdin="\n".join(group("dev")))
    lock("package", "-", below="dev", stdin="\n".join(group("package")))
    lock_without_dependencies("models")
