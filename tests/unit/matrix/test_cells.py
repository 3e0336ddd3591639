from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hfreg.errors import VerificationError
from hfreg.kernels.targets import Target
from hfreg.matrix.cells import STATES, Cell, VersionEvidence, derive, summarize
from hfreg.passports.passport import Passport, verify_passport
from unit import samples, signing
from unit.signing import KEY, PUBLISHER, TRUSTED, kernel_record

V3, V4 = "x86_64-v3", "x86_64-v4"
TARGETS = [
    Target(name=V3, summary="", maturity="available"),
    Target(name=V4, summary="", maturity="available"),
    Target(name="aether", summary="", maturity="planned"),
    Target(name="nova", summary="", maturity="joint validation"),
]
CLASSES = '[[classes]]\nname = "first"\n[[classes]]\nname = "second"\n'
MANIFEST = samples.manifest(samples.UNARY)  # float32, float16; one class


def record(
    kind: str = "float32",
    *,
    verdict: str = "passed",
    attribute_class: str = "general",
    target: str = V3,
    language: str = "halide",
    **more: Any,
) -> signing.Json:
    name = f"sample.{kind}.{attribute_class}.{target}.{language}"
    value = None if verdict == "not_built" else signing.digest(name.encode())
    fields = {"types": {"T": kind}, "attributeClass": attribute_class, "language": language}
    return kernel_record(name, value, verdict=verdict) | fields | more


def passport(*records: signing.Json, target: str = V3, key: Any = KEY, **more: Any) -> Passport:
    """A passport that really verifies."""
    artifacts = {r["name"]: r["digest"] for r in records if r["digest"]} | {"source.tar": "sha256:" + "3" * 64}
    return verify_passport(
        signing.passport(artifacts, records, target=target, key=key, **more),
        TRUSTED,
        reference="sample@1.0.0",
        target=target,
        package=signing.PACKAGE,
        artifacts=artifacts,
    )


def cells(*records: signing.Json, **more: Any) -> dict[str, Cell]:
    """The cells of x86_64-v3, by element type."""
    evidence = VersionEvidence(MANIFEST, {V3: passport(*records, **more)})
    return {dict(cell.types)["T"]: cell for cell in derive([evidence], TARGETS[:1])}


def test_there_is_a_cell_for_each_version_type_class_and_target() -> None:
    two = samples.manifest(samples.UNARY + CLASSES, version="1.1.0")
    found = derive([VersionEvidence(two, {}), VersionEvidence(MANIFEST, {})], TARGETS)
    keys = [(c.version, dict(c.types)["T"], c.attribute_class, c.target) for c in found]
    assert len(keys) == len(set(keys)) == (2 * 2 + 2 * 1) * 4
    assert {key[:3] for key in keys} == {
        ("1.0.0", "float32", "general"),
        ("1.0.0", "float16", "general"),
        *(("1.1.0", kind, name) for kind in ("float32", "float16") for name in ("first", "second")),
    }


def test_the_order_of_versions_targets_and_passports_does_not_matter() -> None:
    versions = [
        VersionEvidence(MANIFEST, {V3: passport(record()), V4: passport(record(target=V4), target=V4)}),
        VersionEvidence(samples.manifest(samples.UNARY, version="1.1.0"), {}),
    ]
    backwards = [replace(v, passports=dict(reversed(list(v.passports.items())))) for v in reversed(versions)]
    assert derive(versions, TARGETS) == derive(backwards, TARGETS[::-1])


@pytest.mark.parametrize("target", TARGETS[2:], ids=lambda target: target.name)
def test_a_target_that_is_not_there_is_planned_whatever_a_passport_says(target: Target) -> None:
    evidence = VersionEvidence(MANIFEST, {target.name: passport(record(target=target.name), target=target.name)})
    for cell in derive([evidence], [target]):
        assert (cell.state, cell.reason) == ("planned", f"the target is {target.maturity}")
        assert cell.evidence == () and cell.kernels == () and cell.serving is None


def test_a_target_without_a_passport_is_untested() -> None:
    evidence = VersionEvidence(MANIFEST, {V4: passport(record(target=V4), target=V4)})
    for cell in derive([evidence], TARGETS[:1]):
        assert (cell.state, cell.reason) == ("untested", "published without kernels for this target")
        assert cell.serving is None


def test_a_kernel_that_passed_makes_its_cell_verified_and_no_other() -> None:
    found = cells(record("float32"))
    assert found["float32"].state == "verified"
    assert found["float32"].reason == ""
    assert found["float32"].serving == found["float32"].kernels[0]
    assert found["float32"].kernels[0].name == f"sample.float32.general.{V3}.halide"
    assert found["float16"].state == "unsupported"
    assert found["float16"].reason == "the package has no kernel for it"
    assert found["float16"].serving is None


@pytest.mark.parametrize(
    "verdict",
    [
        "wrong_result",
        "unwritten_output",
        "out_of_bounds_write",
        "input_modified",
        "not_repeatable",
        "reported_error",
        "crashed",
        "timed_out",
        "reference_failed",
        "not_built",
    ],
)
def test_every_other_verdict_makes_a_cell_failed(verdict: str) -> None:
    cell = cells(record("float32", verdict=verdict), record("float16"))["float32"]
    assert (cell.state, cell.reason) == ("failed", verdict)
    assert cell.serving is None
    assert cell.kernels[0].digest == ("" if verdict == "not_built" else signing.digest(cell.kernels[0].name.encode()))


def test_kernels_that_did_not_run_leave_a_cell_untested() -> None:
    found = cells(record("float32", verdict="not_run"), reason="this processor lacks avx512f")
    assert (found["float32"].state, found["float32"].reason) == ("untested", "this processor lacks avx512f")
    found = cells(record("float32", verdict="not_run"))
    assert found["float32"].reason == "the machine that signed could not run it"


@pytest.mark.parametrize("is_first", [True, False])
def test_one_kernel_that_passed_is_enough_and_serves(is_first: bool) -> None:
    records = [record(language="c", verdict="crashed"), record(language="halide")]
    cell = cells(*(records[::-1] if is_first else records))["float32"]
    assert cell.state == "verified"
    assert [(k.language, k.verdict) for k in cell.kernels] == [("halide", "passed"), ("c", "crashed")]
    assert cell.serving == cell.kernels[0]


def test_of_several_kernels_that_were_not_measured_the_first_one_serves() -> None:
    cell = cells(record(language="c"), record(language="halide"))["float32"]
    assert [k.language for k in cell.kernels] == ["c", "halide"]


def timed(*times_ns: float, threads: int = 1) -> list[signing.Json]:
    """One workload for each time."""
    return [
        {
            "workload": f"w{place}",
            "shapes": {},
            "threads": threads,
            "rounds": 15,
            "medianNs": time,
            "p10Ns": time,
            "p90Ns": time,
            "madNs": 0.0,
            "bytes": 1.0,
            "bandwidthGbS": 1.0,
            "peakBandwidthGbS": 1.0,
            "bandwidthUse": 1.0,
        }
        for place, time in enumerate(times_ns)
    ]


@pytest.mark.parametrize(
    ("c", "halide", "first"),
    [
        (timed(100.0), timed(99.0), "halide"),
        (timed(99.0), timed(100.0), "c"),
        (timed(100.0), timed(100.0), "c"),
        (timed(100.0, 400.0), timed(150.0, 300.0), "c"),  # geometric means: 200 and 212; arithmetic ones: 250 and 225
        ([], timed(1e9), "halide"),  # not measured is slower than measured
        (timed(1.0, threads=2), timed(1e9), "halide"),  # times on one thread count
        (timed(1.0, threads=2) + timed(7.0), timed(5.0), "halide"),
    ],
)
def test_of_several_kernels_that_passed_the_fastest_one_serves(
    c: list[signing.Json], halide: list[signing.Json], first: str
) -> None:
    cell = cells(record(language="c", performance=c), record(language="halide", performance=halide))["float32"]
    assert cell.serving is not None and cell.serving.language == first


def test_a_kernel_that_failed_does_not_serve_however_fast_it_is() -> None:
    fast = record(language="c", verdict="wrong_result", performance=timed(1.0))
    cell = cells(fast, record(language="halide", performance=timed(100.0)))["float32"]
    assert [k.language for k in cell.kernels] == ["halide", "c"]


@pytest.mark.parametrize("time", [0.0, -1.0])
def test_a_time_that_no_call_can_take_does_not_stop_the_matrix(time: float) -> None:
    # Whether the passport is refused or the kernel counts as not measured: one odd figure must not hide all cells.
    try:
        cell = cells(record(performance=timed(time)))["float32"]
    except VerificationError:
        return
    assert cell.state == "verified"


def test_a_kernel_that_failed_beside_one_that_did_not_run_makes_a_cell_failed() -> None:
    cell = cells(record(verdict="not_run"), record(language="c", verdict="crashed"))["float32"]
    assert (cell.state, cell.reason) == ("failed", "crashed")


def test_a_failed_cell_says_what_failed() -> None:
    failure = {"case": "D2/x-nan-mixed", "verdict": "wrong_result", "detail": "y at [3]: 0, expected nan"}
    data_set = {"dataSet": "D2", "cases": 2, "failed": 1, "elements": 9, "maxErrorRatio": None, "maxUlp": 0.0} | {
        "rmsUlp": 0.0,
        "biasUlp": 0.0,
        "failures": [failure],
    }
    cell = cells(record(verdict="wrong_result", dataSets=[data_set | {"failures": []}, data_set]))["float32"]
    assert cell.reason == "D2/x-nan-mixed: wrong_result: y at [3]: 0, expected nan"
    cell = cells(record(verdict="not_built", detail="halide: out of registers"))["float32"]
    assert cell.reason == "halide: out of registers"


def test_records_of_another_class_do_not_count() -> None:
    evidence = VersionEvidence(
        samples.manifest(samples.UNARY + CLASSES), {V3: passport(record(attribute_class="second"))}
    )
    states = {(dict(c.types)["T"], c.attribute_class): c.state for c in derive([evidence], TARGETS[:1])}
    assert states == {
        ("float32", "first"): "unsupported",
        ("float32", "second"): "verified",
        ("float16", "first"): "unsupported",
        ("float16", "second"): "unsupported",
    }


@pytest.mark.parametrize(("key", "is_own"), [(KEY, True), (PUBLISHER, False)], ids=["own", "publisher"])
def test_a_cell_carries_its_evidence_its_signers_and_its_age(key: Any, is_own: bool) -> None:
    signed = passport(record(), key=key, finished="2026-03-04T05:06:07Z")
    (cell, _) = derive([VersionEvidence(MANIFEST, {V3: signed})], TARGETS[:1])[::-1]
    assert cell.evidence == tuple(sorted(statement.digest for statement in signed.statements))
    assert len(cell.evidence) == 2
    assert cell.signers == (signing.hint_of(key),)
    assert cell.is_self_attested is is_own
    assert cell.measured_on == "2026-03-04T05:06:07Z"
    assert cell.as_json() == {
        "operator": "sample",
        "version": "1.0.0",
        "types": {"T": "float32"},
        "attributeClass": "general",
        "target": V3,
        "state": "verified",
        "reason": "",
        "kernels": [
            {
                "name": f"sample.float32.general.{V3}.halide",
                "digest": signing.digest(f"sample.float32.general.{V3}.halide".encode()),
                "language": "halide",
                "verdict": "passed",
            }
        ],
        "evidence": list(cell.evidence),
        "signers": [signing.hint_of(key)],
        "selfAttested": is_own,
        "measuredOn": "2026-03-04T05:06:07Z",
    }


def test_an_operator_of_several_type_variables_has_a_cell_for_each_combination() -> None:
    body = samples.UNARY.replace('T = ["float32", "float16"]', 'T = ["float32", "float16"]\nI = ["int32", "int64"]')
    found = derive([VersionEvidence(samples.manifest(body), {})], TARGETS[:1])
    assert {cell.types for cell in found} == {
        (("I", i), ("T", t)) for i in ("int32", "int64") for t in ("float32", "float16")
    }  # fmt: skip


def states(*names: str) -> list[Cell]:
    return [Cell("a", "1.0.0", (), "general", V3, name) for name in names]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        *((([state]), state) for state in STATES if state != "partial"),
        (["verified", "verified"], "verified"),
        (["verified", "failed"], "partial"),
        (["untested", "verified"], "partial"),
        (["verified", "unsupported", "planned"], "partial"),
        (["failed", "untested"], "failed"),
        (["untested", "failed"], "failed"),
        (["unsupported", "untested"], "unsupported"),
        (["planned", "untested"], "untested"),
        (["yanked", "stale"], "stale"),
        (["planned", "planned"], "planned"),
    ],
)
def test_a_group_is_partial_where_some_cells_are_verified_and_else_has_the_first_state(
    names: list[str], expected: str
) -> None:
    # The order of states is that of design.md, section 9.
    assert summarize(states(*names)) == expected


def test_the_states_are_those_of_the_design() -> None:
    assert STATES == ("verified", "partial", "failed", "unsupported", "untested", "stale", "yanked", "planned")


def test_a_group_without_cells_has_a_state_too() -> None:
    # An operator that no target is known for: nothing is known about it.
    assert summarize([]) == "untested"
