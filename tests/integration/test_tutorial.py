"""The tutorial of docs/semantics.md, as it stands there: it fails where it says so, and then passes."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from hfreg.evaluation.evaluate import evaluate_kernel
from hfreg.evaluation.results import KernelEvaluation
from hfreg.kernels.artifact import KernelKey
from hfreg.kernels.build import build_kernel
from hfreg.kernels.targets import buildable_targets
from hfreg.ops.check import check_package
from hfreg.ops.package import load_package
from hfreg.ops.reference import Reference
from hfreg.ops.scaffold import new_package

pytestmark = pytest.mark.build

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "semantics.md").read_text()
TUTORIAL = TEXT[TEXT.index("## Tutorial") :]


def block(language: str, beginning: str, *, last: bool = False) -> str:
    """The code of the tutorial that begins like this."""
    blocks: list[str] = re.findall(rf"^```{language}\n(.*?)^```$", TUTORIAL, re.MULTILINE | re.DOTALL)
    found = [code for code in blocks if code.startswith(beginning)]
    return found[-1 if last else 0]


def evaluate(folder: Path) -> KernelEvaluation:
    """Evaluate the float32 kernel on a target that runs everywhere."""
    package = load_package(folder)
    target = next(t for t in buildable_targets() if not t.why_not_here())
    key = KernelKey(package.name, (("T", "float32"),), "general", target.name, "halide")
    with Reference(package) as reference:
        return evaluate_kernel(package, build_kernel(package, key), reference, nonce="tutorial")


def test_the_tutorial_works(tmp_path: Path) -> None:
    folder = new_package("swiglu", tmp_path).root
    for path in sorted((folder / "golden").rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    (folder / "op.toml").write_text(block("toml", "schema = 1"))
    semantics = '"""SwiGLU: the hidden layer'
    (folder / "semantics.py").write_text(block("python", semantics))
    (folder / "reference.py").write_text(block("python", '"""SwiGLU in float64.'))
    golden = block("python", "from pathlib import Path")
    subprocess.run([sys.executable, "-c", golden], cwd=tmp_path, check=True)
    assert check_package(load_package(folder)) == 1

    first = evaluate(folder)
    assert first.verdict == "wrong_result"
    failed = {failure.case.rsplit("-", 1)[0] for failure in first.failures}
    assert {"D1/near-cancelling", "D2/gate-minus-inf"} <= failed

    manifest = (folder / "op.toml").read_text()
    declared = block("toml", "flushes_subnormals")
    (folder / "op.toml").write_text(manifest.replace('bound = "E3"\n', f'bound = "E3"\n{declared}'))
    (folder / "semantics.py").write_text(block("python", semantics, last=True))
    second = evaluate(folder)
    assert list(second.failures) == []
    assert second.verdict == "passed"
