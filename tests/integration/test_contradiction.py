"""Golden cases and the reference of a package are held against each other."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from integration.surface import PACKAGES, hfreg, host

pytestmark = pytest.mark.build


def test_a_golden_result_that_contradicts_the_reference_fails_the_kernel(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(PACKAGES / "relu", tmp_path / "relu"))
    stored = next(folder.glob("golden/*float32*/test_data_set_0/output_0.pb"))
    values = numpy_helper.to_array(onnx.load_tensor(str(stored))).copy()
    values.reshape(-1)[1] = np.float32(1.5)
    onnx.save_tensor(numpy_helper.from_array(values), str(stored))
    done = hfreg("test", folder, "--target", host(), "--json")
    assert done.status == 1
    kernel = next(record for record in done.json() if record["types"] == {"T": "float32"})
    assert kernel["verdict"] == "reference_failed"
    (failure,) = [failure for entry in kernel["dataSets"] for failure in entry["failures"]]
    assert failure["case"].startswith("D0/")
    assert "the golden result contradicts reference.py: y at [1]" in failure["detail"]
