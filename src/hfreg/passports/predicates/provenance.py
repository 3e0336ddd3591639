"""SLSA provenance v1: what the kernels were built from, with what, by whom. https://slsa.dev/spec/v1.0/provenance"""

from __future__ import annotations

from typing import Any

from hfreg.passports.predicates.base import Hex, PredicateModel, Timestamp

PROVENANCE_TYPE = "https://slsa.dev/provenance/v1"
BUILD_TYPE = "https://hfreg.dev/build/v1"
LOCAL_BUILDER = "https://hfreg.dev/builder/local/v1"


class DigestSet(PredicateModel):
    """The digests of something."""

    sha256: Hex


class ResourceDescriptor(PredicateModel):
    """Something that took part in a build."""

    uri: str
    """A package URL."""
    digest: DigestSet
    name: str = ""


class BuildDefinition(PredicateModel):
    """What was asked for, and all that decides the result."""

    build_type: str
    external_parameters: dict[str, Any]
    """`package` (name@version), `target`, and `kernels`: the keys that were built."""
    internal_parameters: dict[str, Any] = {}
    """`builds`: how many builds of each kernel had the same bytes."""
    resolved_dependencies: list[ResourceDescriptor]
    """The op package, hfreg's own recipe, and the tools, each by digest."""


class Builder(PredicateModel):
    """Who built."""

    id: str
    version: dict[str, str] = {}


class BuildMetadata(PredicateModel):
    """When it was built."""

    invocation_id: str = ""
    started_on: Timestamp
    finished_on: Timestamp


class RunDetails(PredicateModel):
    """One run of the builder."""

    builder: Builder
    metadata: BuildMetadata


class Provenance(PredicateModel):
    """The predicate."""

    build_definition: BuildDefinition
    run_details: RunDetails
