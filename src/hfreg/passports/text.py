"""Passports as text for people."""

from __future__ import annotations

from hfreg.digests import short
from hfreg.passports.passport import Passport
from hfreg.passports.predicates.verification import KernelRecord
from hfreg.passports.verifier import VerifiedStatement


def format_passport(passport: Passport) -> str:
    """Who signed, what was built from what, what was measured, where, and the verdict."""
    verification, provenance = passport.verification, passport.provenance
    definition, machine = provenance.build_definition, verification.environment
    attested = "self-attested: this machine's own key" if passport.is_self_attested else "a trusted key"
    lines = [
        f"Passport of {passport.reference} on {passport.target}: {verification.verdict.upper()}",
        *([f"  {verification.reason}"] if verification.reason else []),
        f"  signed by      {', '.join(passport.signers)} ({attested})",
        f"  finished       {verification.finished_on}",
        f"  builder        {provenance.run_details.builder.id}",
        "  built from",
        *(
            f"    {entry.uri:34} sha256:{entry.digest.sha256[:16]}…" + (f"  {entry.name}" if entry.name else "")
            for entry in definition.resolved_dependencies
        ),
        f"  reproduced     {definition.internal_parameters.get('builds', 1)} builds of each kernel gave the same bytes",
        f"  measured on    {machine.cpu_model}, {machine.logical_cpus} CPUs, {machine.memory_gb:g} GiB, "
        f"{machine.operating_system}" + (", emulated" if verification.target.is_emulated else ""),
        f"  with           {', '.join(f'{name} {version}' for name, version in machine.tools.items())}",
        *(
            f"  peak           {peak.gflop_s:g} GFLOP/s and {peak.bandwidth_gb_s:g} GB/s on {peak.threads} thread(s)"
            for peak in verification.peaks
        ),
        "  kernels",
    ]
    for record in verification.kernels:
        lines += _kernel_lines(record)
    return "\n".join(lines) + "\n"


def _kernel_lines(record: KernelRecord) -> list[str]:
    digest = short(record.digest) if record.digest else "not built"
    title = f"{'-'.join(record.types.values())} {record.attribute_class} ({record.language})"
    lines = [f"    {title:44} {record.verdict:14} {digest}"]
    if record.detail:
        lines.append(f"      {record.detail}")
    for entry in record.data_sets:
        ratio = "unbounded" if entry.max_error_ratio is None else f"{entry.max_error_ratio:.3f}"
        lines.append(
            f"      {entry.data_set}  {entry.cases - entry.failed}/{entry.cases} cases, {entry.elements} elements, "
            f"error/bound {ratio}, max {entry.max_ulp:.3g} ULP, rms {entry.rms_ulp:.2g}"
        )
        lines += [f"        {f.case}: {f.verdict}: {f.detail}" for f in entry.failures]
    for timed in record.performance:
        speed = f", {timed.speedup:.2f}x {timed.peer}" if timed.speedup else ""
        roofline = f", {timed.roofline_fraction:.0%} of roofline" if timed.roofline_fraction else ""
        lines.append(
            f"      {timed.workload} on {timed.threads} thread(s): {timed.median_ns / 1000:.1f} µs "
            f"[{timed.p10_ns / 1000:.1f}, {timed.p90_ns / 1000:.1f}]{roofline}{speed}"
        )
    return lines


def format_statement(verified: VerifiedStatement) -> str:
    """One verified statement."""
    subjects = "\n".join(f"    {name}  {digest}" for name, digest in verified.statement.subjects.items())
    return (
        f"verified: {verified.statement.predicate_type}\n  signed by  {verified.signer}\n"
        f"  statement  {verified.digest}\n  subjects\n{subjects}"
    )
