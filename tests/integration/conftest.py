"""Homes and registries for the integration tests. What takes long to make is made once, by one of the workers."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from integration import faults
from integration.surface import PACKAGES, UNMEASURED, hfreg, host

WASM = "wasm32-simd"


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all workers of this run have."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "shared"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def home(shared: Path) -> dict[str, str]:
    """The environment of a user of this run: own keys and data, and a cache that starts cold.

    `$HFREG_TEST_CACHE` names a cache that is kept between runs, for those who work on these tests.
    """
    names = ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "HFREG_CACHE")
    folders = {name: str(shared / name.lower()) for name in names}
    folders["HFREG_REGISTRY"] = str(shared / "default-registry")
    if kept := os.environ.get("HFREG_TEST_CACHE"):
        folders["HFREG_CACHE"] = kept
    return folders


@pytest.fixture(autouse=True)
def _at_home(home: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in home.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("HFREG_SIGNING_KEY", raising=False)
    monkeypatch.delenv("HFREG_NUM_THREADS", raising=False)


Once = Callable[[str, Callable[[Path], object]], Path]


@pytest.fixture(scope="session")
def once(shared: Path) -> Once:
    """Makes a folder once for all workers: the first one fills it, the others wait."""

    def make(name: str, fill: Callable[[Path], object]) -> Path:
        folder, done = shared / name, shared / f"{name}.done"
        with (shared / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not done.exists():
                fill(folder)
                done.touch()
        return folder

    return make


def publish(registry: Path, home: dict[str, str], *arguments: str | Path, status: int = 0) -> None:
    """Publish, and see that it ended as it should."""
    result = hfreg("publish", "--registry", registry, *arguments, env=home)
    assert result.status == status, str(result)


@pytest.fixture(scope="session")
def ten(once: Once, home: dict[str, str]) -> Path:
    """A registry with all packages of this repository, on the best target of this machine."""
    return once("ten", lambda folder: publish(folder, home, PACKAGES, "--target", host(), *UNMEASURED))


@pytest.fixture(scope="session")
def small(once: Once, home: dict[str, str]) -> Path:
    """A registry with one package on a native target and an emulated one. Tests that change a registry copy it."""
    targets = ("--target", host(), "--target", WASM)
    return once("small", lambda folder: publish(folder, home, PACKAGES / "relu", *targets, *UNMEASURED))


@pytest.fixture(scope="session")
def faulty_package(once: Once) -> Path:
    """A package whose kernels are each wrong in one way, and one that is right."""
    return once("faulty", lambda folder: faults.write_package(folder / faults.NAME)) / faults.NAME


@pytest.fixture(scope="session")
def faulty(once: Once, home: dict[str, str], faulty_package: Path) -> Path:
    """A registry in which that package is published."""
    return once(
        "faulty-registry",
        lambda folder: publish(folder, home, faulty_package, "--target", host(), *UNMEASURED, status=1),
    )
