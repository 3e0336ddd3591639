from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from hfreg.arrays import Array
from hfreg.errors import ManifestError
from hfreg.ops.check import check_package
from hfreg.ops.golden import write_golden
from hfreg.ops.package import OpPackage, load_package, read_package
from unit import samples

ZEROS = np.zeros((2, 3), np.float32)


def package(root: Path, body: str, inputs: list[Array | None], output: Array, source: str = "by hand") -> OpPackage:
    """A package with one golden case."""
    manifest = samples.manifest(body)
    parameters = f"def sample({', '.join(manifest.inputs)}): ...\n".encode()
    files = {**samples.package_files(samples.manifest_text(body)), "semantics.py": parameters}
    files["reference.py"] = parameters
    files = {name: content for name, content in files.items() if not name.startswith("golden/")}
    folder = samples.write_files(root / "sample", files)
    write_golden(folder / "golden" / "only", manifest, inputs, [output], attributes={}, source=source)
    return load_package(folder)


def problems(made: OpPackage) -> list[str]:
    with pytest.raises(ManifestError) as caught:
        check_package(made)
    return [str(problem) for problem in caught.value.problems]


def test_files_golden_cases_and_workloads_are_reported_together(tmp_path: Path) -> None:
    workload = '[[workloads]]\nname = "bad"\nshapes = { a = [2, 3], b = [3, 2] }\nreason = "none"\n'
    made = package(tmp_path, samples.BROADCAST + workload, [ZEROS, ZEROS, None], ZEROS)
    (made.root / "golden" / "only" / "model.onnx").unlink()
    (made.root / "golden" / "notes.txt").write_text("not a case")
    (made.root / "CHANGELOG.md").unlink()
    found = "\n".join(problems(read_package(made.root)))
    for expected in (
        "CHANGELOG.md: has no entry",
        "notes.txt: is no part of a golden test",
        "sample/golden/only: there is no golden/only/model.onnx",
        "workload bad",
    ):
        assert expected in found


def test_a_model_without_data_is_no_golden_case(tmp_path: Path) -> None:
    made = package(tmp_path, samples.UNARY, [ZEROS], ZEROS)
    for path in (made.root / "golden" / "only" / "test_data_set_0").iterdir():
        path.unlink()
    assert problems(read_package(made.root)) == ["sample/golden/only: holds no test_data_set_0"]


def test_the_golden_cases_of_a_right_package_are_counted(tmp_path: Path) -> None:
    assert check_package(package(tmp_path, samples.UNARY, [ZEROS], ZEROS)) == 1


@pytest.mark.parametrize(
    ("inputs", "output", "problem"),
    [
        ([ZEROS, ZEROS[0]], ZEROS[:1], "y has shape [1, 3], the signature gives [2, 3]"),
        ([ZEROS, ZEROS[:, :2]], ZEROS, "b has shape [2, 2], expected [i...]: i is [2, 3] in a"),
        ([ZEROS, None], ZEROS, "b is missing"),
        ([ZEROS.astype(np.float64)] * 2, ZEROS.astype(np.float64), "a is float64, expected float32 or int32"),
        ([ZEROS, ZEROS.astype(np.int32)], ZEROS, "b is int32, but T is float32 elsewhere"),
        ([ZEROS, ZEROS], ZEROS.astype(np.float16), "y is float16, expected float32 or int32"),
    ],
)
def test_a_golden_case_that_is_no_call_of_the_operator_is_a_problem(
    tmp_path: Path, inputs: list[Array | None], output: Array, problem: str
) -> None:
    # A case whose types no kernel has would never run.
    found = problems(package(tmp_path, samples.BROADCAST, [*inputs, None], output))
    assert len(found) == 1
    assert found[0].startswith("sample/golden/only: ")
    assert problem in found[0]


def test_a_golden_case_says_where_it_comes_from(tmp_path: Path) -> None:
    assert problems(package(tmp_path, samples.UNARY, [ZEROS], ZEROS, source="")) == [
        "sample/golden/only: says not where it comes from (the model's doc string)"
    ]


def test_a_workload_is_a_call_of_the_operator(tmp_path: Path) -> None:
    workload = '[[workloads]]\nname = "bad"\nshapes = { a = [2, 3], b = [3, 2] }\nreason = "none"\n'
    found = problems(package(tmp_path, samples.BROADCAST + workload, [ZEROS, ZEROS, None], ZEROS))
    assert len(found) == 1
    assert re.search(r"sample/op\.toml:\d+: workload bad: ", found[0])
    assert "b has shape [3, 2], expected [i...]" in found[0]


def test_the_outputs_of_a_workload_are_what_kernels_can_index(tmp_path: Path) -> None:
    workload = '[[workloads]]\nname = "{0}"\nshapes = {{ a = [{0}, 1], b = [65536] }}\nreason = "none"\n'
    both = workload.format(32768) + workload.format(32767)
    (found,) = problems(package(tmp_path, samples.BROADCAST + both, [ZEROS, ZEROS, None], ZEROS))
    assert "workload 32768: y has the shape [32768, 65536]: more elements than kernels can index" in found
