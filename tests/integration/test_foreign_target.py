"""Targets that this machine does not run natively: emulated ones run, others build and say why they do not."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from hfreg import load
from hfreg.dtypes import DTYPES
from hfreg.errors import RunError
from hfreg.kernels.artifact import Kernel
from hfreg.kernels.runner.client import Call, KernelRunner, Ran
from hfreg.registry.registry import Registry
from hfreg.versions import Reference
from integration.packages import copy_package
from integration.surface import REPOSITORY, UNMEASURED, hfreg, hfreg_here, host

pytestmark = pytest.mark.build

WASM = "wasm32-simd"


def wasm_kernel(registry: Path, type_name: str) -> Kernel:
    version = Registry.open(registry).resolve(Reference.parse("relu"))
    key = next(e.key for e in version.config.kernels if e.key.target == WASM and e.key.type_slug == type_name)
    return Kernel(key, version.layer(key.slug))


@pytest.mark.parametrize("type_name", ["float32", "float16", "bfloat16"])
def test_a_wasm_kernel_agrees_with_numpy(type_name: str, small: Path) -> None:
    dtype = DTYPES[type_name]
    rng = np.random.default_rng(2)
    with KernelRunner(wasm_kernel(small, type_name)) as runner:
        for shape in [(), (1,), (17,), (3, 0, 2), (4, 5, 33)]:
            x = np.asarray(rng.standard_normal(shape)).astype(dtype.numpy)
            outcome = runner.call(Call((x,), ((dtype, shape),)))
            assert isinstance(outcome, Ran) and not outcome.faults
            assert np.array_equal(outcome.outputs[0], np.where(x > 0, x, np.zeros_like(x)))


def test_a_wasm_module_imports_nothing(small: Path) -> None:
    wasmtime = pytest.importorskip("wasmtime")
    module = wasmtime.Module(wasmtime.Engine(), wasm_kernel(small, "float32").content)
    assert list(module.imports) == []
    assert {"hfreg_kernel", "hfreg_kernel_abi", "memory"} <= {export.name for export in module.exports}


def test_an_emulated_passport_has_accuracy_and_no_times(small: Path) -> None:
    statements = hfreg_here("verify", "relu", "--registry", small, "--json").json()["passports"]
    predicates = [s["predicate"] for passport in statements for s in passport]
    emulated = next(p for p in predicates if p.get("target", {}).get("name") == WASM)
    assert emulated["verdict"] == "passed"
    assert emulated["target"]["isEmulated"] is True
    assert all(kernel["performance"] == [] for kernel in emulated["kernels"])
    assert all(
        {d["dataSet"] for d in kernel["dataSets"]} == {"D0", "D1", "D2", "D5"} for kernel in emulated["kernels"][:1]
    )


def test_an_emulated_kernel_is_not_loaded_into_this_process(small: Path) -> None:
    with pytest.raises(RunError, match="kernels for wasm32-simd cannot be loaded into this process"):
        load("relu", registry=small, target=WASM)


@pytest.fixture
def newer_machine(tmp_path: Path) -> dict[str, str]:
    """An hfreg that knows one more target: this machine's own with a processor feature that nothing has."""
    root = tmp_path / "checkout"
    for name in ("src", "kernels", "ops", "matrix", "passports", "registry"):
        if (REPOSITORY / name).is_dir():
            shutil.copytree(REPOSITORY / name, root / name, ignore=shutil.ignore_patterns("__pycache__", "golden"))
    folder = root / "kernels" / "targets"
    text = (folder / f"{host()}.toml").read_text().replace(f'name = "{host()}"', 'name = "x86_64-v9"')
    assert "cpu_features = [" in text
    (folder / "x86_64-v9.toml").write_text(text.replace("cpu_features = [", 'cpu_features = ["quantum", '))
    return {"PYTHONPATH": str(root / "src")}


def test_a_target_that_this_processor_lacks(newer_machine: dict[str, str], tmp_path: Path) -> None:
    """It builds, twice and alike; it does not run; the passport and the matrix say why."""
    package, registry = copy_package(tmp_path / "ops" / "copy"), tmp_path / "registry"
    where = subprocess_module(newer_machine)
    assert where.startswith(newer_machine["PYTHONPATH"])
    built = hfreg("build", package, "--target", "x86_64-v9", env=newer_machine)
    assert built.status == 0, str(built)
    assert "unsupported here: this processor lacks quantum" in built.out + built.err

    tested = hfreg("test", package, "--target", "x86_64-v9", "--json", env=newer_machine)
    assert tested.status == 0, str(tested)
    assert tested.json()[0]["verdict"] == "not_run"
    assert tested.json()[0]["reason"] == "unsupported here: this processor lacks quantum"

    targets = ("--target", "x86_64-v9", "--target", host())
    published = hfreg("publish", package, *targets, "--registry", registry, *UNMEASURED, env=newer_machine)
    assert published.status == 0, str(published)
    cells = hfreg("show", "copy", "--registry", registry, "--json", env=newer_machine).json()["cells"]
    states = {cell["target"]: cell["state"] for cell in cells}
    assert (states["x86_64-v9"], states[host()]) == ("untested", "verified")
    reason = next(cell["reason"] for cell in cells if cell["target"] == "x86_64-v9")
    assert "unsupported here: this processor lacks quantum" in reason


def subprocess_module(env: dict[str, str]) -> str:
    """Where `hfreg` is imported from in a process with that environment."""
    import os
    import subprocess

    program = "import hfreg, json; print(json.dumps(hfreg.__file__))"
    ended = subprocess.run(
        [sys.executable, "-c", program], env=os.environ | env, capture_output=True, text=True, check=True
    )
    path: str = json.loads(ended.stdout)
    return path


def test_planned_targets_cannot_be_built_for(tmp_path: Path) -> None:
    result = hfreg_here("build", copy_package(tmp_path / "copy"), "--target", "aether")
    assert result.status == 2
    assert "nothing can be built for aether: it is planned" in result.err
