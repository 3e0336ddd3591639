"""A passport in the words and figures of its page."""

from __future__ import annotations

from typing import Any

from hfreg.passports.passport import Passport
from hfreg.passports.predicates.verification import KernelRecord, PerformanceRecord

_DATA_SETS = {"D0": "D0 golden", "D1": "D1 distributions", "D2": "D2 special values", "D5": "D5 shapes"}


def passport_stem(passport: Passport) -> str:
    """The file name of a passport's page, without its ending."""
    return f"{passport.reference}-{passport.target}"


def passport_view(passport: Passport) -> dict[str, Any]:
    """What the page shows."""
    verification, provenance = passport.verification, passport.provenance
    stem = passport_stem(passport)
    passed = sum(record.verdict == "passed" for record in verification.kernels)
    return {
        "reference": passport.reference,
        "name": verification.operator.name,
        "target": passport.target,
        "state": {"passed": "verified", "failed": "failed", "not_run": "untested"}[verification.verdict],
        "verdict_text": f"{passed} of {len(verification.kernels)} kernels passed. {verification.reason}".strip(),
        "signers": passport.signers,
        "self_attested": passport.is_self_attested,
        "builder": provenance.run_details.builder.id,
        "finished": verification.finished_on,
        "statements": [
            {"kind": kind, "digest": statement.digest, "href": f"{stem}.{kind}.sigstore.json"}
            for kind, statement in zip(("provenance", "verification"), passport.statements, strict=True)
        ],
        "dependencies": [
            {"name": f"{entry.uri}{f' ({entry.name})' if entry.name else ''}", "digest": entry.digest.sha256}
            for entry in provenance.build_definition.resolved_dependencies
        ],
        "environment": environment_facts(passport),
        "kernels": [_kernel_view(record, emulated=verification.target.is_emulated) for record in verification.kernels],
    }


def environment_facts(passport: Passport) -> list[tuple[str, str]]:
    """The machine, for people."""
    verification = passport.verification
    machine = verification.environment
    facts = [
        ("Processor", f"{machine.cpu_model} ({machine.architecture}), {machine.logical_cpus} CPUs"),
        ("Memory", f"{machine.memory_gb:g} GiB"),
        ("System", machine.operating_system),
        ("Governor, load", f"{machine.governor}, {machine.load_average:g}"),
        ("Tools", ", ".join(f"{name} {version}" for name, version in machine.tools.items())),
    ]
    facts += [
        (
            f"Peak, {peak.threads} thread{'s' if peak.threads > 1 else ''}",
            f"{peak.gflop_s:g} GFLOP/s, {peak.bandwidth_gb_s:g} GB/s",
        )
        for peak in verification.peaks
    ]
    if verification.target.is_emulated:
        facts.append(("Emulated", "accuracy and safety count, times were not taken"))
    return facts


def _kernel_view(record: KernelRecord, *, emulated: bool) -> dict[str, Any]:
    state = {"passed": "verified", "not_run": "untested"}.get(record.verdict, "failed")
    peers = sorted({entry.peer for entry in record.performance if entry.peer})
    return {
        "anchor": record.name,
        "title": f"{', '.join(record.types.values())} · {record.attribute_class} · {record.language}",
        "state": state,
        "verdict": record.verdict,
        "detail": record.detail,
        "digest": record.digest,
        "schedule": _schedule(record),
        "data_sets": [
            {
                "name": _DATA_SETS.get(entry.data_set, entry.data_set),
                "cases": entry.cases,
                "failed": entry.failed,
                "elements": entry.elements,
                "ratio": "unbounded" if entry.max_error_ratio is None else f"{entry.max_error_ratio:.3f}",
                "max_ulp": f"{entry.max_ulp:.3g}",
                "rms_ulp": f"{entry.rms_ulp:.3g}",
                "bias_ulp": f"{entry.bias_ulp:.2g}",
            }
            for entry in record.data_sets
        ],
        "failures": [failure for entry in record.data_sets for failure in entry.failures],
        "performance": [] if emulated else [_performance_view(entry) for entry in record.performance],
        "performance_note": "Times of one call. The peer runs in turn with the kernel, in the same process: "
        f"{', '.join(peers) or 'none has this operator and type'}. "
        "The roofline's bandwidth is that of the cache or memory that the data stays in.",
    }


def _schedule(record: KernelRecord) -> str:
    schedule = str(record.notes.get("schedule", ""))
    gains = [entry.toolchain_efficiency for entry in record.performance if entry.toolchain_efficiency]
    return f"{schedule}, η = hand time / class time = {gains[0]:.2f}" if gains else schedule


def _performance_view(entry: PerformanceRecord) -> dict[str, str]:
    def figure(value: float | None) -> str:
        return "" if value is None else f"{value:.2f}"

    return {
        "workload": entry.workload,
        "threads": str(entry.threads),
        "median": f"{entry.median_ns / 1000:.1f}",
        "p10": f"{entry.p10_ns / 1000:.1f}",
        "p90": f"{entry.p90_ns / 1000:.1f}",
        "intensity": figure(entry.arithmetic_intensity_flop_per_byte),
        "use": figure(entry.bandwidth_use),
        "roofline": figure(entry.roofline_fraction),
        "speedup": figure(entry.speedup),
    }
