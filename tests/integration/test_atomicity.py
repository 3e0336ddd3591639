"""A publish happens whole or not at all, whatever ends it, and whoever else publishes."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hfreg.errors import MachineError
from hfreg.registry.layout import Layout
from integration.conftest import Once
from integration.packages import copy_package, golden, write
from integration.surface import UNMEASURED, Result, command, hfreg, hfreg_here, host

pytestmark = pytest.mark.build

KILLS = 50


def publish_command(folder: Path, registry: Path) -> list[str]:
    return command("publish", folder, "--target", host(), "--registry", registry, "--jobs", "1", *UNMEASURED)


def start(folder: Path, registry: Path, **options: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        publish_command(folder, registry), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
    )


def end(process: subprocess.Popen[str]) -> Result:
    out, err = process.communicate(timeout=120)
    return Result(process.returncode, out, err)


def published(registry: Path) -> set[str]:
    result = hfreg_here("list", "--registry", registry, "--json")
    assert result.status == 0, str(result)
    return {f"{entry['name']}@{entry['version']}" for entry in result.json()}


def leftovers(registry: Path) -> list[str]:
    return [path.name for path in registry.rglob(".tmp-*")]


@pytest.fixture(scope="session")
def package(once: Once, home: dict[str, str]) -> Path:
    """A package whose kernel is built and evaluated already, so that a publish is little more than its last step."""

    def fill(folder: Path) -> None:
        copy_package(folder / "copy")
        registry = folder / "registry"
        result = hfreg(*publish_command(folder / "copy", registry)[3:], env=home)
        assert result.status == 0, str(result)

    return once("copy-package", fill) / "copy"


@pytest.fixture
def registry(package: Path, tmp_path: Path) -> Path:
    """A registry in which that package is published."""
    return Path(shutil.copytree(package.parent / "registry", tmp_path / "registry"))


FORKS = """\
import json, os, sys
import hfreg.ci.pipeline, hfreg.cli.publish_command, hfreg.ops.check, hfreg.passports.issue, hfreg.registry.registry
from hfreg.cli.main import main
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        silence = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(silence, descriptor)
        sys.argv = ["hfreg", *json.loads(line)]
        main()
    print(child, flush=True)
    print(os.waitpid(child, 0)[1], flush=True)
"""
"""A process that has imported everything and forks for each command line: its children die in the midst of their work,
not of their imports."""


class Forks:
    """The parent's side of it."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", FORKS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def start(self, arguments: list[str]) -> int:
        """Start a command; its process's number."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(arguments) + "\n")
        self._process.stdin.flush()
        return self._line()

    def wait(self) -> int:
        """Wait for the end of the command; the status that `waitpid` gives."""
        return self._line()

    def _line(self) -> int:
        assert self._process.stdout is not None
        return int(self._process.stdout.readline())

    def __enter__(self) -> Forks:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()


def test_kill_at_random_moments(package: Path, small: Path, tmp_path: Path) -> None:
    """The registry verifies each time; the publish is whole or absent, and can be made again."""
    rng = random.Random(20261130)
    outcomes = {"whole": 0, "absent": 0}
    killed: list[Path] = []
    with Forks() as forks:

        def publish(registry: Path) -> list[str]:
            return publish_command(package, registry)[3:]

        times = []
        for number in range(3):
            began = time.monotonic()
            forks.start(publish(tmp_path / f"whole-{number}"))
            assert forks.wait() == 0
            times.append(time.monotonic() - began)
        for number in range(KILLS):
            registry = tmp_path / f"registry-{number}"
            shutil.copytree(small, registry)
            lock = registry / ".hfreg-lock"
            before = lock.read_bytes()
            process = forks.start(publish(registry))
            if number % 2:  # any moment
                time.sleep(rng.uniform(0, min(times)))
            else:  # the moments in which files are written
                deadline = time.monotonic() + 60
                while lock.read_bytes() == before and time.monotonic() < deadline:
                    time.sleep(0.0002)
                time.sleep(rng.uniform(0, 0.02))
            with contextlib.suppress(ProcessLookupError):  # it may be done already
                os.kill(process, signal.SIGKILL)
            assert forks.wait() in (0, signal.SIGKILL)
            names = published(registry)
            assert names in ({"relu@1.0.0"}, {"relu@1.0.0", "copy@1.0.0"})
            for name in names:
                result = hfreg_here("verify", name, "--registry", registry)
                assert result.status == 0, str(result)
            outcomes["whole" if "copy@1.0.0" in names else "absent"] += 1
            killed.append(registry)
        assert outcomes["absent"], outcomes
        for registry in sorted(killed, key=lambda folder: len(leftovers(folder)), reverse=True)[:3]:
            forks.start(publish(registry))
            assert forks.wait() == 0
            assert published(registry) == {"relu@1.0.0", "copy@1.0.0"}
            assert hfreg_here("verify", "copy", "--registry", registry).status == 0
            assert leftovers(registry) == []


def test_two_publishers_of_one_version(package: Path, tmp_path: Path) -> None:
    registry = tmp_path / "registry"
    results = [end(process) for process in [start(package, registry) for _ in range(2)]]
    assert [result.status for result in results] == [0, 0], "\n".join(map(str, results))
    assert published(registry) == {"copy@1.0.0"}
    assert hfreg_here("verify", "copy", "--registry", registry).status == 0
    assert "copy@1.0.0 published" in "".join(result.out for result in results)


def test_several_publishers_of_different_versions(tmp_path: Path) -> None:
    registry = tmp_path / "registry"
    folders = [copy_package(tmp_path / "ops" / name) for name in ("one", "two", "three", "four")]
    results = [end(process) for process in [start(folder, registry) for folder in folders]]
    assert [result.status for result in results] == [0, 0, 0, 0], "\n".join(map(str, results))
    assert published(registry) == {"one@1.0.0", "two@1.0.0", "three@1.0.0", "four@1.0.0"}
    for name in ("one", "two", "three", "four"):
        assert hfreg_here("verify", name, "--registry", registry).status == 0


HOLDER = """\
import sys, time
from pathlib import Path
from hfreg.registry.layout import Layout
with Layout(Path(sys.argv[1])).writing("publishing patience@1.0.0"):
    print("locked", flush=True)
    time.sleep(float(sys.argv[2]))
"""


def hold(registry: Path, seconds: float) -> subprocess.Popen[str]:
    """A process that holds the writers' lock."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(registry), str(seconds)], stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "locked\n"
    return holder


def test_a_publisher_waits_for_the_lock(package: Path, tmp_path: Path) -> None:
    registry = tmp_path / "registry"
    with hold(registry, 2.0):
        assert end(start(package, registry)).status == 0
    assert published(registry) == {"copy@1.0.0"}


def test_a_lock_that_is_held_too_long_names_its_holder(tmp_path: Path) -> None:
    registry = tmp_path / "registry"
    with hold(registry, 60.0) as holder:
        with (
            pytest.raises(MachineError, match=f"by process {holder.pid}: publishing patience@1.0.0") as caught,
            Layout(registry).writing("publishing", timeout_s=0.3),
        ):
            pass
        holder.kill()
    assert ".hfreg-lock" in caught.value.where
    assert "wait for it" in caught.value.hint


def test_the_lock_goes_with_its_holder(package: Path, tmp_path: Path) -> None:
    registry = tmp_path / "registry"
    with hold(registry, 60.0) as holder:
        holder.kill()
    assert end(start(package, registry)).status == 0


def test_the_same_content_again(package: Path, registry: Path) -> None:
    before = {path: path.read_bytes() for path in registry.rglob("*") if path.is_file() and "lock" not in path.name}
    again = end(start(package, registry))
    assert again.status == 0
    assert "copy@1.0.0 is published with the same content: nothing to do" in again.out
    assert {path: path.read_bytes() for path in before} == before


@pytest.mark.parametrize(
    ("file", "old", "new", "what"),
    [
        ("kernel.c", "{\n", "{ /* the same kernel in the end */\n", "source.tar"),
        ("kernel.c", "y[i] = x[i]", "y[i] = +x[i]", "source.tar"),
        ("CHANGELOG.md", "First", "Very first", "source.tar"),
    ],
)
def test_other_content_is_refused(
    file: str, old: str, new: str, what: str, package: Path, registry: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(package, folder)
    text = (folder / file).read_text()
    assert old in text
    (folder / file).write_text(text.replace(old, new, 1))
    result = end(start(folder, registry))
    assert result.status == 1
    assert "copy@1.0.0: is published with other content" in result.err
    assert what in result.err
    assert "raise the version in op.toml" in result.err
    assert hfreg_here("verify", "copy", "--registry", registry).status == 0


def test_other_golden_tests_are_other_content(package: Path, registry: Path, tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(package, folder)
    x = np.array([4.0], np.float32)
    write(folder, golden("Copy", {"x": x}, x))
    old = _golden_digest(registry)
    result = end(start(folder, registry))
    assert result.status == 1
    assert f"golden.tar is {old[7:19]} there" in result.err, result.err


def _golden_digest(registry: Path) -> str:
    index = json.loads((registry / "index.json").read_bytes())
    entry = next(e for e in index["manifests"] if "passport" not in e["artifactType"])
    manifest = json.loads((registry / "blobs" / "sha256" / entry["digest"][7:]).read_bytes())
    layers = {layer["annotations"]["org.opencontainers.image.title"]: layer["digest"] for layer in manifest["layers"]}
    digest: str = layers["golden.tar"]
    return digest


def test_a_new_version_beside_the_old_one(registry: Path, tmp_path: Path) -> None:
    folder = copy_package(tmp_path / "ops" / "copy", version="1.1.0")
    assert end(start(folder, registry)).status == 0
    assert published(registry) == {"copy@1.0.0", "copy@1.1.0"}
    for version in ("copy@1.0.0", "copy@1.1.0"):
        assert hfreg_here("verify", version, "--registry", registry).status == 0


def without_privileges() -> Callable[[], None]:
    """What a child calls so that permissions count for it, even where the tests run as root: it drops the
    capabilities CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH and CAP_FOWNER (capabilities(7))."""
    libc = ctypes.CDLL(None)

    def drop() -> None:
        for capability in (1, 2, 3):
            libc.prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP

    return drop


def test_a_registry_that_cannot_be_written(package: Path, small: Path, tmp_path: Path) -> None:
    registry = tmp_path / "registry"
    shutil.copytree(small, registry)
    folders = [registry, *(path for path in registry.rglob("*") if path.is_dir())]
    for path in registry.rglob("*"):
        path.chmod(0o555 if path.is_dir() else 0o444)
    registry.chmod(0o555)
    try:
        result = end(start(package, registry, preexec_fn=without_privileges()))
        assert result.status == 3, str(result)
        assert str(registry) in result.err
        assert "Permission denied" in result.err
        assert "Traceback" not in result.err
        assert hfreg_here("verify", "relu", "--registry", registry).status == 0
    finally:
        for folder in folders:
            folder.chmod(0o755)


def test_a_registry_below_a_file(package: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = end(start(package, tmp_path / "file" / "registry"))
    assert result.status == 3
    assert str(tmp_path / "file") in result.err
    assert "Traceback" not in result.err


def test_a_disk_that_is_full(tmp_path: Path) -> None:
    """The limit on the size of a file stands for the end of the disk: only the archive of golden tests is beyond it."""
    folder = copy_package(tmp_path / "ops" / "large")
    x = np.arange(75_000, dtype=np.float32)
    for case in ("a", "b", "c"):
        files = golden("Copy", {"x": x}, x)
        write(folder, {name.replace("by_hand", case): content for name, content in files.items()})
    registry = tmp_path / "registry"
    limit = 1 << 20
    assert 6 * x.nbytes > limit > 2 * x.nbytes

    def small_disk() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))

    result = end(start(folder, registry, preexec_fn=small_disk))
    assert result.status == 3, str(result)
    assert "cannot write: File too large" in result.err
    assert "check the free space" in result.err
    assert "Traceback" not in result.err
    assert published(registry) == set()
    assert leftovers(registry) == []
    assert end(start(folder, registry)).status == 0
    assert published(registry) == {"large@1.0.0"}
