"""Issue a passport: put what a build and an evaluation found into the two predicates, and sign them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from hfreg.evaluation.environment import MachineDescription
from hfreg.evaluation.results import DataSetResult, KernelEvaluation
from hfreg.kernels.artifact import Kernel, KernelKey
from hfreg.kernels.build import Failed, recipe_digest
from hfreg.kernels.targets import Target
from hfreg.kernels.toolchain import Tool
from hfreg.ops.package import OpPackage
from hfreg.passports.bundle import sign_bundle
from hfreg.passports.keys import SigningKey
from hfreg.passports.passport import expected_verdict
from hfreg.passports.predicates import PROVENANCE_TYPE, VERIFICATION_TYPE, Provenance, Verification
from hfreg.passports.predicates.base import PredicateModel, format_time
from hfreg.passports.predicates.provenance import (
    BUILD_TYPE,
    LOCAL_BUILDER,
    BuildDefinition,
    Builder,
    BuildMetadata,
    DigestSet,
    ResourceDescriptor,
    RunDetails,
)
from hfreg.passports.predicates.verification import (
    DataSetRecord,
    Environment,
    FailureRecord,
    KernelRecord,
    OperatorIdentity,
    Peaks,
    PerformanceRecord,
    TargetIdentity,
)
from hfreg.passports.statement import Statement, dump_statement


class Signer(Protocol):
    """Whoever signs statements."""

    def sign(self, statement: bytes) -> bytes:
        """Sign an in-toto statement; the bundle's bytes."""


@dataclass(frozen=True)
class LocalSigner:
    """Signs with the key on this machine."""

    key: SigningKey

    def sign(self, statement: bytes) -> bytes:
        return sign_bundle(self.key, statement)


@dataclass(frozen=True)
class KernelFindings:
    """All that was found out about one kernel."""

    kernel: Kernel | Failed
    evaluation: KernelEvaluation | None = None
    """None where this machine cannot run the target."""
    performance: tuple[PerformanceRecord, ...] = ()

    @property
    def key(self) -> KernelKey:
        return self.kernel.key


@dataclass(frozen=True)
class TargetFindings:
    """All that was found out about one op version on one target."""

    package: OpPackage
    target: Target
    kernels: tuple[KernelFindings, ...]
    artifacts: dict[str, str]
    """The digest of whatever else the passport vouches for, by name: the source, and the host runtime."""
    tools: tuple[Tool, ...]
    evaluator: str
    machine: MachineDescription
    started: datetime
    finished: datetime
    peaks: tuple[Peaks, ...] = ()
    reason: str = ""

    @property
    def subjects(self) -> dict[str, str]:
        built = (findings.kernel for findings in self.kernels)
        kernels = {kernel.key.slug: kernel.digest for kernel in built if isinstance(kernel, Kernel)}
        return kernels | self.artifacts


def issue_passport(findings: TargetFindings, signer: Signer) -> tuple[bytes, ...]:
    """The signed bundles of a passport: provenance, then verification."""
    statements = (
        Statement(findings.subjects, PROVENANCE_TYPE, _as_predicate(make_provenance(findings))),
        Statement(findings.subjects, VERIFICATION_TYPE, _as_predicate(make_verification(findings))),
    )
    return tuple(signer.sign(dump_statement(statement)) for statement in statements)


def _as_predicate(model: PredicateModel) -> dict[str, object]:
    return model.model_dump(mode="json", by_alias=True)


def make_provenance(findings: TargetFindings) -> Provenance:
    """Where the kernels come from."""
    package = findings.package
    dependencies = [
        ResourceDescriptor(uri=f"pkg:hfreg/{package.manifest.reference}", digest=_hex(package.digest)),
        ResourceDescriptor(
            uri=f"pkg:pypi/hfreg@{findings.machine.tools.get('hfreg', '0')}",
            digest=_hex(recipe_digest()),
            name="recipe",
        ),
        *(
            ResourceDescriptor(
                uri=f"pkg:pypi/{'ziglang' if tool.name == 'zig' else tool.name}@{tool.version}",
                digest=_hex(tool.digest),
                name=tool.path.name,
            )
            for tool in findings.tools
        ),
    ]
    return Provenance(
        build_definition=BuildDefinition(
            build_type=BUILD_TYPE,
            external_parameters={
                "package": package.manifest.reference,
                "target": findings.target.name,
                "kernels": [entry.key.as_json() for entry in findings.kernels],
            },
            internal_parameters={"builds": 2},
            resolved_dependencies=dependencies,
        ),
        run_details=RunDetails(
            builder=Builder(id=LOCAL_BUILDER, version={"hfreg": findings.machine.tools.get("hfreg", "0")}),
            metadata=BuildMetadata(
                started_on=format_time(findings.started), finished_on=format_time(findings.finished)
            ),
        ),
    )


def _hex(digest: str) -> DigestSet:
    return DigestSet(sha256=digest.removeprefix("sha256:"))


def make_verification(findings: TargetFindings) -> Verification:
    """What was checked of the kernels."""
    manifest, machine = findings.package.manifest, findings.machine
    kernels = [kernel_record(entry) for entry in findings.kernels]
    return Verification(
        operator=OperatorIdentity(
            name=manifest.name,
            version=manifest.version,
            domain=manifest.operator.domain,
            operator=manifest.operator.name,
            since_versions=manifest.operator.since_versions,
        ),
        target=TargetIdentity(
            name=findings.target.name,
            is_emulated=findings.target.run is not None and findings.target.run.is_emulated,
        ),
        package=findings.package.digest,
        evaluator=findings.evaluator,
        verdict=expected_verdict(kernels),  # type: ignore[arg-type]
        reason=findings.reason,
        kernels=kernels,
        peaks=list(findings.peaks),
        environment=Environment(
            cpu_model=machine.cpu_model,
            architecture=machine.architecture,
            logical_cpus=machine.logical_cpus,
            memory_gb=machine.memory_gb,
            operating_system=machine.operating_system,
            governor=machine.governor,
            load_average=machine.load_average,
            tools=machine.tools,
        ),
        started_on=format_time(findings.started),
        finished_on=format_time(findings.finished),
    )


def kernel_record(findings: KernelFindings) -> KernelRecord:
    """What a passport says about one kernel."""
    key, kernel, evaluation = findings.key, findings.kernel, findings.evaluation
    if isinstance(kernel, Failed):
        return KernelRecord(
            name=key.slug, digest=None, types=dict(key.types), attribute_class=key.attribute_class,
            language=key.language, verdict="not_built", detail=str(kernel.error),
        )  # fmt: skip
    return KernelRecord(
        name=key.slug,
        digest=kernel.digest,
        types=dict(key.types),
        attribute_class=key.attribute_class,
        language=key.language,
        verdict=evaluation.verdict if evaluation else "not_run",
        nonce=evaluation.nonce if evaluation else "",
        seed=evaluation.seed if evaluation else "",
        threads=evaluation.threads if evaluation else None,
        evaluated_on=format_time(evaluation.evaluated_on) if evaluation and evaluation.evaluated_on else None,
        data_sets=[_data_set_record(result) for result in evaluation.data_sets] if evaluation else [],
        performance=list(findings.performance),
        notes=kernel.notes,
    )


def _data_set_record(result: DataSetResult) -> DataSetRecord:
    return DataSetRecord(
        data_set=result.data_set,
        cases=result.cases,
        failed=result.failed,
        elements=result.elements,
        max_error_ratio=_rounded(result.max_error_ratio) if math.isfinite(result.max_error_ratio) else None,
        max_ulp=_rounded(result.max_ulp),
        rms_ulp=_rounded(result.rms_ulp),
        bias_ulp=_rounded(result.bias_ulp),
        failures=[FailureRecord(case=f.case, verdict=f.verdict, detail=f.detail) for f in result.failures],
    )


def _rounded(value: float) -> float:
    """Six significant digits: what a measurement is worth, and what keeps a passport readable."""
    return float(f"{value:.6g}")
