"""One byte changed anywhere in a registry: refused, and the message says what."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hfreg import HfregError, load
from integration.surface import hfreg_here, host

pytestmark = pytest.mark.build

POSITIONS = 24
"""Places in each file: the first byte, the last one, and others at random."""


class Stored:
    """A registry as its files are, read with `json` alone."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.index = json.loads((root / "index.json").read_bytes())
        entries = {"passport" in entry["artifactType"]: entry for entry in self.index["manifests"]}
        self.operator, self.passport = entries[False], self._passport_of_host()

    def _passport_of_host(self) -> dict[str, Any]:
        return next(e for e in self.index["manifests"] if e["annotations"].get("dev.hfreg.target") == host())

    def blob(self, descriptor: dict[str, Any]) -> Path:
        digest: str = descriptor["digest"]
        return self.root / "blobs" / "sha256" / digest.removeprefix("sha256:")

    def read(self, descriptor: dict[str, Any]) -> Any:
        return json.loads(self.blob(descriptor).read_bytes())

    def layer(self, title: str) -> Path:
        layers = self.read(self.operator)["layers"]
        return self.blob(next(layer for layer in layers if layer["annotations"].get(OCI_TITLE) == title))

    @property
    def kernel(self) -> str:
        return f"relu.float32.general.{host()}.halide"


OCI_TITLE = "org.opencontainers.image.title"

FILES: dict[str, Callable[[Stored], Path]] = {
    "index": lambda s: s.root / "index.json",
    "layout marker": lambda s: s.root / "oci-layout",
    "operator manifest": lambda s: s.blob(s.operator),
    "operator config": lambda s: s.blob(s.read(s.operator)["config"]),
    "passport manifest": lambda s: s.blob(s.passport),
    "provenance bundle": lambda s: s.blob(s.read(s.passport)["layers"][0]),
    "verification bundle": lambda s: s.blob(s.read(s.passport)["layers"][1]),
    "source": lambda s: s.layer("source.tar"),
    "golden tests": lambda s: s.layer("golden.tar"),
    "kernel": lambda s: s.layer(s.kernel),
    "host runtime": lambda s: s.layer(f"runtime.{host()}.so"),
}
READERS: dict[str, tuple[str, ...]] = {
    "index": ("list", "verify", "show", "matrix"),
    "layout marker": ("list", "verify", "show", "matrix"),
    "operator manifest": ("list", "verify", "show", "matrix"),
    "operator config": ("list", "verify", "show", "matrix"),
    "passport manifest": ("list", "verify", "show", "matrix"),
    "provenance bundle": ("verify", "show", "matrix"),
    "verification bundle": ("verify", "show", "matrix"),
    "source": ("verify",),
    "golden tests": ("verify",),
    "kernel": ("verify",),
    "host runtime": ("verify",),
}
"""The commands that read each of them."""
COMMANDS = {
    "list": ("list",),
    "verify": ("verify", "relu@1.0.0"),
    "show": ("show", "relu"),
    "matrix": ("matrix", "export"),
}
NOT_LOADED = {"source", "golden tests", "host runtime"}
"""What `hfreg.load` has no use for; and the runtime, of which a process loads verified bytes once."""


@pytest.fixture
def stored(small: Path, tmp_path: Path) -> Stored:
    shutil.copytree(small, tmp_path / "registry")
    return Stored(tmp_path / "registry")


def changes(content: bytes, seed: str) -> Iterator[tuple[int, bytes]]:
    """The content with one byte changed, at several places."""
    rng = random.Random(seed)
    places = {0, len(content) - 1, *rng.sample(range(len(content)), min(POSITIONS, len(content)))}
    for place in sorted(places):
        changed = bytearray(content)
        changed[place] ^= 1 << rng.randrange(8)
        yield place, bytes(changed)


def call(registry: Path) -> None:
    """Load and use the kernel of `Stored.kernel`."""
    operator = load("relu", registry=registry, target=host())
    operator(np.zeros(3, np.float32))


@pytest.mark.parametrize("what", FILES)
def test_a_changed_byte_is_refused_by_all_who_read_it(what: str, stored: Stored) -> None:
    path = FILES[what](stored)
    content = path.read_bytes()
    for place, changed in changes(content, what):
        path.write_bytes(changed)
        for name in READERS[what]:
            result = hfreg_here(*COMMANDS[name], "--registry", stored.root)
            assert result.status == 1, f"{name} with byte {place} of the {what} changed: {result}"
            assert str(stored.root) in result.err or "relu@1.0.0" in result.err, result.err
            if what != "index":  # from a changed index, the error is in what it points to
                assert str(path) in result.err, result.err
        if what not in NOT_LOADED:
            with pytest.raises(HfregError):
                call(stored.root)
    path.write_bytes(content)
    call(stored.root)


def test_a_changed_runtime_is_not_loaded(stored: Stored) -> None:
    path = FILES["host runtime"](stored)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    program = f"import hfreg; hfreg.load('relu', registry={str(stored.root)!r}, target={host()!r})"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ended.returncode != 0
    assert f"RegistryError: {path}: the blob of runtime.{host()}.so was changed" in ended.stderr


@pytest.mark.parametrize("name", ["list", "verify"])
def test_every_byte_of_the_index_counts(name: str, stored: Stored) -> None:
    """Whatever a changed index says, it is neither another registry nor an empty one."""
    path = stored.root / "index.json"
    content = path.read_bytes()
    for place in range(0, len(content), 3):
        path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        result = hfreg_here(*COMMANDS[name], "--registry", stored.root)
        assert result.status == 1, f"byte {place}, {content[max(0, place - 20) : place + 20]!r}: {result}"


@pytest.mark.parametrize("what", FILES)
@pytest.mark.parametrize("change", ["removed", "cut", "longer", "empty"])
def test_files_that_are_gone_or_of_another_length(what: str, change: str, stored: Stored) -> None:
    path = FILES[what](stored)
    content = path.read_bytes()
    if change == "removed":
        path.unlink()
    else:
        path.write_bytes({"cut": content[:-1], "longer": content + b"\n", "empty": b""}[change])
    result = hfreg_here("verify", "relu@1.0.0", "--registry", stored.root)
    assert result.status == 1
    assert str(path) in result.err


def test_two_kernels_that_changed_places(stored: Stored) -> None:
    one, other = (stored.layer(f"relu.{kind}.general.{host()}.halide") for kind in ("float16", "bfloat16"))
    first, second = one.read_bytes(), other.read_bytes()
    one.write_bytes(second)
    other.write_bytes(first)
    result = hfreg_here("verify", "relu@1.0.0", "--registry", stored.root)
    assert result.status == 1
    assert "relu.float16.general" in result.err or "relu.bfloat16.general" in result.err


def canonical(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


class Forger:
    """Changes a registry so that every digest fits again, without a key."""

    def __init__(self, stored: Stored) -> None:
        self.stored = stored

    def put(self, descriptor: dict[str, Any], content: bytes) -> None:
        """Store content, and make a descriptor point to it."""
        descriptor["digest"], descriptor["size"] = "sha256:" + hashlib.sha256(content).hexdigest(), len(content)
        self.stored.blob(descriptor).write_bytes(content)

    def forge(self, change: Callable[[dict[str, Any], dict[str, Any]], None]) -> None:
        """Change the manifest and the config of the operator, and all that names them."""
        stored = self.stored
        manifest = stored.read(stored.operator)
        config = stored.read(manifest["config"])
        change(manifest, config)
        self.put(manifest["config"], canonical(config))
        self.put(stored.operator, canonical(manifest))
        for entry in stored.index["manifests"]:
            if "dev.hfreg.target" in entry["annotations"]:
                passport = stored.read(entry)
                passport["subject"] |= {name: stored.operator[name] for name in ("digest", "size")}
                self.put(entry, canonical(passport))
        entries = stored.index["manifests"]
        entries.sort(key=lambda e: (e["annotations"].get("org.opencontainers.image.ref.name", "~"), e["digest"]))
        (stored.root / "index.json").write_bytes(canonical(stored.index))


def test_a_kernel_replaced_with_all_digests_made_to_fit(stored: Stored) -> None:
    """What is left to the signature: it is about other bytes."""
    forger = Forger(stored)

    def change(manifest: dict[str, Any], config: dict[str, Any]) -> None:
        layer = next(layer for layer in manifest["layers"] if layer["annotations"].get(OCI_TITLE) == stored.kernel)
        forger.put(layer, stored.blob(layer).read_bytes() + b"\0")
        types = {"T": "float32"}
        kernel = next(k for k in config["kernels"] if (k["target"], k["types"]) == (host(), types))
        kernel["digest"] = layer["digest"]

    forger.forge(change)
    assert hfreg_here("list", "--registry", stored.root).status == 0, "the forgery itself is sound"
    for name in ("verify", "show", "matrix"):
        result = hfreg_here(*COMMANDS[name], "--registry", stored.root)
        assert result.status == 1
        assert stored.kernel in result.err
        assert "the statement is about" in result.err
    with pytest.raises(HfregError, match=stored.kernel):
        call(stored.root)


def test_another_manifest_with_all_digests_made_to_fit(stored: Stored) -> None:
    """The op.toml in the config is what the matrix goes by: a larger claim in it must not be believed."""
    forger = Forger(stored)

    def change(_: dict[str, Any], config: dict[str, Any]) -> None:
        assert "since_versions = [6, 13, 14]" in config["manifest"]
        config["manifest"] = config["manifest"].replace(
            "since_versions = [6, 13, 14]", "since_versions = [6, 13, 14, 99]"
        )

    forger.forge(change)
    for name in ("verify", "show", "matrix"):
        result = hfreg_here(*COMMANDS[name], "--registry", stored.root)
        assert result.status == 1, f"{name}: {result}"
        assert "op.toml" in result.err
    with pytest.raises(HfregError):
        call(stored.root)


def test_a_passport_of_another_key(stored: Stored, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody who does not know the publisher does not believe the passport."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "stranger"))
    result = hfreg_here("verify", "relu@1.0.0", "--registry", stored.root)
    assert result.status == 1
    assert "is not trusted here" in result.err
    assert "--key" in result.err
