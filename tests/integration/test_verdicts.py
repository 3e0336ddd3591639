"""A kernel that misbehaves ends as a verdict with a name, and the service goes on."""

from __future__ import annotations

import re
import resource
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hfreg import HfregError, load
from hfreg.errors import RunError
from integration.faults import FAULTS, NAME, NATIVE_ONLY
from integration.packages import COPY_KERNEL, copy_package
from integration.surface import UNMEASURED, Result, hfreg, hfreg_here, host

pytestmark = pytest.mark.build


def record_of(records: list[dict[str, Any]], fault: str) -> dict[str, Any]:
    return next(record for record in records if record["attributeClass"] == fault)


def failures_of(record: dict[str, Any]) -> list[dict[str, Any]]:
    return [failure for data_set in record["dataSets"] for failure in data_set["failures"]]


@pytest.fixture(scope="module")
def tested(faulty_package: Path, home: dict[str, str]) -> Result:
    return hfreg("test", faulty_package, "--target", host(), "--json", env=home)


@pytest.fixture(scope="module")
def records(faulty: Path, home: dict[str, str]) -> list[dict[str, Any]]:
    """The kernels of the published passport."""
    result = hfreg("verify", f"{NAME}@1.0.0", "--registry", faulty, "--json", env=home)
    assert result.status == 1, str(result)
    statements = result.json()["passports"][0]
    verification = next(s for s in statements if "operator-verification" in s["predicateType"])
    kernels: list[dict[str, Any]] = verification["predicate"]["kernels"]
    return kernels


def test_hfreg_test_fails_when_one_kernel_does(tested: Result) -> None:
    assert tested.status == 1


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_has_its_verdict(fault: str, tested: Result) -> None:
    record = record_of(tested.json(), fault)
    assert record["verdict"] == FAULTS[fault].verdict


@pytest.mark.parametrize(
    "fault", [name for name, fault in FAULTS.items() if fault.verdict not in ("passed", "not_built")]
)
def test_the_failures_say_what_happened_where(fault: str, tested: Result) -> None:
    record = record_of(tested.json(), fault)
    failures = failures_of(record)
    assert failures
    for failure in failures:
        assert failure["verdict"] == FAULTS[fault].verdict
        assert re.search(FAULTS[fault].detail, failure["detail"]), failure["detail"]
        assert "129" in failure["case"], "only calls with 129 elements go wrong; the others passed"


def test_a_kernel_that_wants_a_library_is_not_built(tested: Result) -> None:
    record = record_of(tested.json(), "imports")
    assert "exit" in record["reason"]
    assert record["digest"] is None


@pytest.mark.parametrize("fault", FAULTS)
def test_the_passport_says_so(fault: str, records: list[dict[str, Any]]) -> None:
    record = record_of(records, fault)
    assert record["verdict"] == FAULTS[fault].verdict
    details = [failure["detail"] for failure in failures_of(record)]
    assert all(re.search(FAULTS[fault].detail, detail) for detail in details)


def test_the_verdict_of_the_passport_is_failed(faulty: Path) -> None:
    result = hfreg_here("verify", f"{NAME}@1.0.0", "--registry", faulty)
    assert result.status == 1
    assert "failed" in result.out


def test_the_matrix_has_failed_cells_with_reasons_and_one_verified_one(faulty: Path) -> None:
    cells = hfreg_here("show", NAME, "--registry", faulty, "--json").json()["cells"]
    here = {cell["attributeClass"]: cell for cell in cells if cell["target"] == host()}
    assert {name for name, cell in here.items() if cell["state"] == "verified"} == {"none"}
    for name, fault in FAULTS.items():
        if fault.verdict != "passed":
            assert here[name]["state"] == "failed"
            assert re.search(fault.detail, here[name]["reason"]), here[name]["reason"]


def test_only_the_good_kernel_loads(faulty: Path) -> None:
    operator = load(NAME, registry=faulty)
    x = np.arange(4, dtype=np.float32)
    assert np.array_equal(operator(x), x)
    with pytest.raises(RunError, match="no verified kernel for float32, class segfault"):
        operator(x, fault="segfault")


def test_an_emulated_kernel_is_judged_alike(faulty_package: Path) -> None:
    result = hfreg("test", faulty_package, "--target", "wasm32-simd", "--json")
    assert result.status == 1
    for name, fault in FAULTS.items():
        record = record_of(result.json(), name)
        if name in NATIVE_ONLY:
            continue
        assert record["verdict"] == fault.verdict, name
        said = {failure["detail"] for failure in failures_of(record)}
        pattern = "the module trapped" if name == "trap" else fault.detail
        assert all(re.search(pattern, detail) for detail in said), said


def test_a_kernel_that_always_crashes_is_given_up_and_the_next_one_is_served(tmp_path: Path) -> None:
    """Two packages in one run. Nobody waits for the hundredth crash, let alone for the hundredth timeout."""
    bad = COPY_KERNEL.replace("return 0;", "__builtin_trap();")
    copy_package(tmp_path / "ops" / "bad", kernel=bad)
    copy_package(tmp_path / "ops" / "good")
    result = hfreg("test", tmp_path / "ops", "--target", host(), "--json")
    assert result.status == 1
    crashed, passed = result.json()
    assert (crashed["verdict"], passed["verdict"]) == ("crashed", "passed")
    assert sum(data_set["failed"] for data_set in crashed["dataSets"]) == 3
    assert sum(data_set["cases"] for data_set in passed["dataSets"]) > 50


def test_limits_that_are_tighter_already_stay(tmp_path: Path) -> None:
    """A batch system's limits are below our own: they hold, and nothing fails for them."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200))
        resource.setrlimit(resource.RLIMIT_FSIZE, (32 << 20, 32 << 20))

    folder = copy_package(tmp_path / "limited")
    result = hfreg("test", folder, "--target", host(), preexec_fn=limit)
    assert result.status == 0, str(result)


def test_a_reference_that_failed_gets_another_chance(tmp_path: Path) -> None:
    """That it failed is no property of the kernel, and may have been the machine's fault."""
    folder = copy_package(tmp_path / "late")
    (folder / "reference.py").write_text(f"def late(x):\n    open({str(tmp_path / 'ready')!r})\n    return x\n")
    first = hfreg("test", folder, "--target", host(), "--json")
    assert (first.status, first.json()[0]["verdict"]) == (1, "reference_failed")
    (tmp_path / "ready").touch()
    second = hfreg("test", folder, "--target", host(), "--json")
    assert (second.status, second.json()[0]["verdict"]) == (0, "passed")


def test_an_error_of_the_compiler_reaches_the_author_once(tmp_path: Path) -> None:
    folder = copy_package(tmp_path / "typo", kernel=COPY_KERNEL.replace("x[i]", "z[i]"))
    result = hfreg("test", folder, "--target", host())
    assert result.status == 1
    slug = f"typo.float32.general.{host()}.c"
    assert f"\n{slug}: zig cc failed:\nkernel.c:7:" in result.err
    assert "use of undeclared identifier 'z'" in result.err
    assert f"{slug}: {slug}" not in result.err
    assert "fix kernel.c" in result.err


def test_a_package_of_which_no_kernel_passed_is_not_published(tmp_path: Path) -> None:
    folder = copy_package(tmp_path / "wrong", kernel=COPY_KERNEL.replace("x[i];", "x[i] + 1;"))
    result = hfreg("publish", folder, "--target", host(), "--registry", tmp_path / "registry", *UNMEASURED)
    assert result.status == 1
    assert "wrong@1.0.0: no kernel passed, so there is nothing to publish" in result.err
    assert not (tmp_path / "registry").exists()


def test_the_error_of_a_kernel_reaches_the_caller(faulty: Path) -> None:
    """Nothing of the library ends the caller's process: what goes wrong is an HfregError."""
    with pytest.raises(HfregError):
        load(NAME, registry=faulty)(np.zeros(129, np.float32), fault="error")
