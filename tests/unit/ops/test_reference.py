from __future__ import annotations

import contextlib
from pathlib import Path

import numpy as np
import pytest

from hfreg.dtypes import DTYPES
from hfreg.errors import RunError
from hfreg.ops.package import load_package
from hfreg.ops.reference import Expected, Reference
from unit import samples

TYPES = {"T": DTYPES["float32"]}
BODY = samples.UNARY.replace("E0", "E5")


def call(tmp_path: Path, code: str, *, scale: str = "return 0.0", body: str = BODY) -> Expected:
    """Run a reference of the values 1, 2, 3."""
    source = f"import numpy as np\n\ndef sample(x):\n    {code}\n\ndef error_scale(x, *, expected):\n    {scale}\n"
    files = {**samples.package_files(samples.manifest_text(body)), "reference.py": source.encode()}
    package = load_package(samples.write_files(tmp_path / "sample", files))
    with Reference(package) as reference:
        return reference([np.array([1, 2, 3], np.float32)], {}, types=TYPES, scale=True)


@pytest.mark.parametrize(
    ("code", "dtype"),
    [
        ("return x", np.float64),  # inputs are widened, which is exact
        ("return x.astype(np.float16)", np.float64),
        ("return x.astype(np.longdouble)", np.float64),
        ("return [1.0, 2.0, 3.0]", np.float64),
        ("print('to nobody'); return x.astype(np.int8)", np.int8),
    ],
)
def test_results_are_float64_or_integers(tmp_path: Path, code: str, dtype: type) -> None:
    (output,) = call(tmp_path, code).outputs
    assert output.dtype == dtype
    np.testing.assert_array_equal(output, [1, 2, 3])


def test_the_scale_is_float64(tmp_path: Path) -> None:
    scale = call(tmp_path, "return x", scale="return abs(expected) + 1").scale
    assert scale is not None
    assert scale.dtype == np.float64
    assert scale.tolist() == [2.0, 3.0, 4.0]


@pytest.mark.parametrize(
    ("code", "scale", "message"),
    [
        ("return 1 / 0", "", "ZeroDivisionError"),
        ("return None", "", "Cannot cast"),
        ("return 'text'", "", "Cannot cast"),
        ("return x * 1j", "", "Cannot cast"),
        ("return x, x", "", "returned 2 outputs, expected 1"),
        ("raise SystemExit(3)", "", "process ended: .*3"),
        ("return x", "return 'text'", "could not convert"),
        ("return x", "return np.ones((2, 3))", r"shape \[2, 3\], which does not broadcast to \[3\]"),
        ("return x", "return np.ones(2)", r"shape \[2\], which does not broadcast to \[3\]"),
    ],
)
def test_a_reference_that_fails_is_an_error_that_says_how(tmp_path: Path, code: str, scale: str, message: str) -> None:
    with pytest.raises(RunError, match=message) as caught:
        call(tmp_path, code, scale=scale or "return 0.0")
    assert caught.value.where == "sample/reference.py"


STRAY = """\
import os
from hfreg.wire import Message, dump

def sample(x):
    for descriptor in range(3, 9):
        try:
            os.write(descriptor, dump(Message({"call": 7})))
        except OSError:
            pass
    return x

def error_scale(x, *, expected):
    return 0.0
"""


def test_an_answer_to_another_call_is_none_and_ends_the_process(tmp_path: Path) -> None:
    files = {**samples.package_files(samples.manifest_text(BODY)), "reference.py": STRAY.encode()}
    package = load_package(samples.write_files(tmp_path / "sample", files))
    with Reference(package) as reference:
        for _ in range(2):
            with pytest.raises(RunError, match="the answer is to another call") as caught:
                reference([np.array([1, 2], np.float32)], {}, types=TYPES, scale=False)
            assert caught.value.where == "sample/reference.py"


def test_forks_of_a_reference_never_answer_for_other_calls(tmp_path: Path) -> None:
    source = (
        "import os\n\ndef sample(x):\n    os.fork()\n    return x\n\ndef error_scale(x, *, expected):\n    return 0.0\n"
    )
    files = {**samples.package_files(samples.manifest_text(BODY)), "reference.py": source.encode()}
    package = load_package(samples.write_files(tmp_path / "sample", files))
    with Reference(package) as reference:
        for number in range(6):
            with contextlib.suppress(RunError):
                (output,) = reference([np.array([number], np.float32)], {}, types=TYPES, scale=False).outputs
                assert list(output) == [number]
