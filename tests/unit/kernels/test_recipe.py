"""A build is named by all that decides its bytes, and by nothing else."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from hfreg.kernels.artifact import plan_kernels
from hfreg.kernels.build import RECIPE, action_digest, source_files
from hfreg.ops.package import OpPackage, load_package

READERS = {
    f"hfreg.{name}"
    for name in (
        "digests", "errors", "files", "processes", "resources", "wire", "workers", "kernels.languages.halide_worker",
        "ops.golden", "ops.manifest", "ops.manifest_checks", "ops.package", "ops.toml_lines",
    )
}  # fmt: skip
"""What a build imports to read, to store and to talk; what it reads is in the action."""


@pytest.fixture
def softmax() -> OpPackage:
    return load_package(Path("ops/softmax"))


def action(package: OpPackage) -> str:
    return action_digest(package, next(plan_kernels(package.manifest, package.languages, "x86_64-v3")))


def test_the_recipe_covers_what_a_build_imports() -> None:
    code = (
        "import sys, hfreg.kernels.languages.halide_worker, hfreg.kernels.build\n"
        "print(*(name for name in sys.modules if name.startswith('hfreg')))"
    )
    imported = set(
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    )
    covered = {f"hfreg/{path}"[:-3].replace("/", ".").removesuffix(".__init__") for path in source_files(*RECIPE)}
    packages = {"hfreg", "hfreg.kernels", "hfreg.ops"}
    assert imported - covered - packages - READERS == set()


def test_evidence_does_not_rebuild(softmax: OpPackage) -> None:
    changed = {"reference.py": b"pass", "golden/new/model.onnx": b"", "CHANGELOG.md": b"more"}
    assert action(replace(softmax, files=softmax.files | changed)) == action(softmax)


@pytest.mark.parametrize("name", ["semantics.py", "schedules/x86_64.py", "c/softmax.c"])
def test_sources_do(name: str, softmax: OpPackage) -> None:
    assert action(replace(softmax, files=softmax.files | {name: b"other"})) != action(softmax)


def test_accuracy_is_not_compiled_in_and_attributes_are(softmax: OpPackage) -> None:
    manifest = softmax.manifest
    looser = manifest.model_copy(
        update={"accuracy": manifest.accuracy.model_copy(update={"flushes_subnormals": False})}
    )
    other = manifest.model_copy(update={"attributes": {}})
    assert action(replace(softmax, manifest=looser)) == action(softmax)
    assert action(replace(softmax, manifest=other)) != action(softmax)
