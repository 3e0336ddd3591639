from __future__ import annotations

from pathlib import Path

import pytest

from hfreg.ci.bench import Effort, run_benchmarks
from hfreg.errors import RunError
from hfreg.kernels.targets import host_targets
from hfreg.ops.package import load_package
from unit import samples

WORKLOAD = '[[workloads]]\nname = "small"\nshapes = { x = [4] }\nreason = "none"\n'


def test_a_failed_measurement_says_what_failed_and_nothing_of_pytest(tmp_path: Path) -> None:
    files = samples.package_files(samples.manifest_text(samples.UNARY + WORKLOAD))
    files["semantics.py"] = b"def sample(x):\n    raise ValueError('not written yet')\n"
    package = load_package(samples.write_files(tmp_path / "sample", files))
    with pytest.raises(RunError, match="not written yet") as caught:
        run_benchmarks(package, host_targets()[0].name, Effort(threads=(1,), budget_s=0.1, all_types=False))
    assert caught.value.where == "sample"
    for noise in ("====", "____", "short test summary", "1 failed", "pytest_plugin"):
        assert noise not in caught.value.message
