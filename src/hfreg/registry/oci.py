"""OCI manifests and descriptors, as values. https://github.com/opencontainers/image-spec/blob/v1.1.0/manifest.md

Everything is canonical JSON, so a document has one form and every changed byte shows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hfreg.digests import canonical_json, is_digest, parse_json, sha256
from hfreg.errors import RegistryError, VerificationError
from hfreg.registry import media_types

EMPTY_CONFIG = b"{}"


@dataclass(frozen=True)
class Descriptor:
    """A pointer to content: what it is, how long, and its digest."""

    media_type: str
    digest: str
    size: int
    artifact_type: str = ""
    annotations: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls, content: bytes, media_type: str, *, artifact_type: str = "", annotations: Mapping[str, str] | None = None
    ) -> Descriptor:
        return cls(media_type, sha256(content), len(content), artifact_type, dict(annotations or {}))

    @property
    def title(self) -> str:
        return self.annotations.get(media_types.TITLE, "")

    def as_json(self) -> dict[str, Any]:
        value: dict[str, Any] = {"mediaType": self.media_type, "digest": self.digest, "size": self.size}
        if self.artifact_type:
            value["artifactType"] = self.artifact_type
        if self.annotations:
            value["annotations"] = self.annotations
        return value

    @classmethod
    def from_json(cls, value: Any, *, where: str) -> Descriptor:
        """Read a descriptor strictly.

        Raises:
            RegistryError: a field is missing, unknown or of the wrong form.
        """
        if not isinstance(value, dict) or not {"mediaType", "digest", "size"} <= set(value):
            raise RegistryError("a descriptor without mediaType, digest or size", where=where)
        if unknown := set(value) - {"mediaType", "digest", "size", "artifactType", "annotations"}:
            raise RegistryError(f"a descriptor with the unknown fields {sorted(unknown)}", where=where)
        digest, size, annotations = value["digest"], value["size"], value.get("annotations", {})
        texts = [value["mediaType"], value.get("artifactType", "")]
        _check_texts(texts, annotations, where)
        if not isinstance(digest, str) or not is_digest(digest):
            raise RegistryError(f"{digest!r} is not a SHA-256 digest", where=where)
        if not isinstance(size, int) or isinstance(size, bool) or size < 0:
            raise RegistryError(f"{size!r} is not a size", where=where)
        return cls(texts[0], digest, size, texts[1], annotations)


@dataclass(frozen=True)
class Manifest:
    """An artifact: a config, layers, and for a referrer its subject."""

    artifact_type: str
    config: Descriptor
    layers: tuple[Descriptor, ...]
    annotations: dict[str, str]
    subject: Descriptor | None = None

    def dump(self) -> bytes:
        value: dict[str, Any] = {
            "schemaVersion": 2,
            "mediaType": media_types.MANIFEST,
            "artifactType": self.artifact_type,
            "config": self.config.as_json(),
            "layers": [layer.as_json() for layer in self.layers],
            "annotations": self.annotations,
        }
        if self.subject:
            value["subject"] = self.subject.as_json()
        return canonical_json(value)

    @classmethod
    def parse(cls, data: bytes, *, where: str) -> Manifest:
        """Read a manifest strictly.

        Raises:
            RegistryError: it is not in the one form that hfreg writes.
        """
        value = parse_canonical(data, where=where)
        required = {"schemaVersion", "mediaType", "artifactType", "config", "layers", "annotations"}
        if not isinstance(value, dict) or not required <= set(value) <= required | {"subject"}:
            raise RegistryError("not an artifact manifest of hfreg", where=where)
        if value["schemaVersion"] != 2 or value["mediaType"] != media_types.MANIFEST:
            raise RegistryError("not an OCI image manifest, version 2", where=where)
        if not isinstance(value["layers"], list) or not isinstance(value["annotations"], dict):
            raise RegistryError("layers or annotations of the wrong form", where=where)
        _check_texts([value["artifactType"]], value["annotations"], where)
        subject = Descriptor.from_json(value["subject"], where=where) if "subject" in value else None
        return cls(
            value["artifactType"],
            Descriptor.from_json(value["config"], where=where),
            tuple(Descriptor.from_json(layer, where=where) for layer in value["layers"]),
            value["annotations"],
            subject,
        )

    def descriptor(self, *, ref_name: str = "") -> Descriptor:
        """How an index lists it: with the manifest's annotations, and the name that it goes by."""
        annotations = dict(self.annotations) | ({media_types.REF_NAME: ref_name} if ref_name else {})
        return Descriptor.of(
            self.dump(), media_types.MANIFEST, artifact_type=self.artifact_type, annotations=annotations
        )


def _check_texts(texts: Sequence[Any], annotations: Any, where: str) -> None:
    values = annotations.values() if isinstance(annotations, dict) else [None]
    if not all(isinstance(text, str) for text in (*texts, *values)):
        raise RegistryError("a descriptor or manifest whose names are not strings", where=where)


def dump_index(entries: Sequence[Descriptor]) -> bytes:
    """An image index, its entries in one order."""
    ordered = sorted(entries, key=lambda entry: (entry.annotations.get(media_types.REF_NAME, "~"), entry.digest))
    return canonical_json(
        {"schemaVersion": 2, "mediaType": media_types.INDEX, "manifests": [entry.as_json() for entry in ordered]}
    )


def parse_index(data: bytes, *, where: str) -> tuple[Descriptor, ...]:
    """Read an image index strictly.

    Raises:
        RegistryError: it is not in the one form that hfreg writes.
    """
    value = parse_canonical(data, where=where)
    if not isinstance(value, dict) or set(value) != {"schemaVersion", "mediaType", "manifests"}:
        raise RegistryError("not an OCI image index of hfreg", where=where)
    if (
        value["schemaVersion"] != 2
        or value["mediaType"] != media_types.INDEX
        or not isinstance(value["manifests"], list)
    ):
        raise RegistryError("not an OCI image index, version 2", where=where)
    entries = tuple(Descriptor.from_json(entry, where=where) for entry in value["manifests"])
    if dump_index(entries) != data:
        raise RegistryError("the entries of the index are not in order", where=where)
    if len({entry.digest for entry in entries}) != len(entries):
        raise RegistryError("an entry of the index is there twice", where=where)
    return entries


def parse_canonical(data: bytes, *, where: str) -> Any:
    """Parse JSON that must be in canonical form.

    Raises:
        RegistryError: it is not JSON, or written in another way.
    """
    try:
        value = parse_json(data, where=where)
        is_canonical = canonical_json(value) == data
    except (VerificationError, ValueError) as error:
        raise RegistryError(getattr(error, "message", str(error)), where=where) from error
    if not is_canonical:
        raise RegistryError("not in canonical form: it was changed by hand or by another program", where=where)
    return value
