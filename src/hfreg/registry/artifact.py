"""An op version as an OCI artifact: the package's source and golden tests, its kernels, the host runtimes.

Nothing in it depends on the time or the machine, so the same package built with the same tools is the same artifact.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from hfreg.digests import canonical_json, sha256
from hfreg.errors import RegistryError
from hfreg.kernels.artifact import SOURCE_TITLE, Kernel, KernelKey, runtime_title
from hfreg.ops.package import MANIFEST, OpPackage
from hfreg.registry import media_types
from hfreg.registry.archive import pack
from hfreg.registry.oci import Descriptor, Manifest

GOLDEN_PREFIX = "golden/"
GOLDEN_TITLE = "golden.tar"


def source_archive(package: OpPackage) -> bytes:
    """The files of a package, without its golden tests."""
    return pack({name: content for name, content in package.files.items() if not name.startswith(GOLDEN_PREFIX)})


@dataclass(frozen=True)
class KernelEntry:
    """A kernel of an op version."""

    key: KernelKey
    digest: str


@dataclass(frozen=True)
class OperatorConfig:
    """The config blob: what is in the artifact, without reading the layers."""

    name: str
    version: str
    package: str
    """The digest of the package's files."""
    manifest: str
    """The text of op.toml."""
    kernels: tuple[KernelEntry, ...]
    runtimes: dict[str, str]
    """The digest of the host runtime, by target."""

    def dump(self) -> bytes:
        return canonical_json(
            {
                "name": self.name,
                "version": self.version,
                "package": self.package,
                "manifest": self.manifest,
                "kernels": [{**entry.key.as_json(), "digest": entry.digest} for entry in self.kernels],
                "runtimes": self.runtimes,
            }
        )

    @classmethod
    def parse(cls, data: bytes, *, where: str) -> OperatorConfig:
        """Read a config.

        Raises:
            RegistryError: it is not of the form that hfreg writes.
        """
        try:
            value: dict[str, Any] = json.loads(data)
            kernels = tuple(KernelEntry(KernelKey.from_json(entry), entry["digest"]) for entry in value["kernels"])
            config = cls(
                value["name"], value["version"], value["package"], value["manifest"], kernels, dict(value["runtimes"])
            )
            texts = [config.name, config.version, config.package, config.manifest, *config.runtimes.values()]
            texts += [text for entry in kernels for text in (entry.key.slug, entry.digest)]
            if not all(isinstance(text, str) for text in texts):
                raise TypeError("a name, digest or text that is not a string")
            is_canonical = config.dump() == data
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise RegistryError(f"not the config of an operator: {error!r}", where=where) from error
        if not is_canonical:
            raise RegistryError("not in the one form that hfreg writes", where=where)
        return config


@dataclass(frozen=True)
class OperatorArtifact:
    """An artifact that is ready to be stored."""

    config: OperatorConfig
    layers: tuple[tuple[Descriptor, bytes], ...]

    @cached_property
    def manifest(self) -> Manifest:
        return operator_manifest(self.config, [descriptor for descriptor, _ in self.layers])

    @property
    def contents(self) -> list[bytes]:
        """Every blob of it, the manifest included."""
        return [self.config.dump(), *(content for _, content in self.layers), self.manifest.dump()]


def operator_manifest(config: OperatorConfig, layers: Sequence[Descriptor]) -> Manifest:
    """The manifest of an op version."""
    return Manifest(
        artifact_type=media_types.OPERATOR,
        config=Descriptor.of(config.dump(), media_types.OPERATOR_CONFIG),
        layers=tuple(layers),
        annotations={media_types.TITLE: config.name, media_types.VERSION: config.version},
    )


def make_artifact(package: OpPackage, kernels: Sequence[Kernel], runtimes: Mapping[str, bytes]) -> OperatorArtifact:
    """Put an op version together.

    Args:
        package: the op package.
        kernels: its kernels, for all targets.
        runtimes: the host runtime of each target that has one.
    """
    ordered = sorted(kernels, key=lambda kernel: kernel.key)
    golden = {name: content for name, content in package.files.items() if name.startswith(GOLDEN_PREFIX)}
    layers = [
        _layer(source_archive(package), media_types.SOURCE, SOURCE_TITLE),
        _layer(pack(golden), media_types.GOLDEN, GOLDEN_TITLE),
        *(_layer(kernel.content, media_types.KERNEL, kernel.key.slug) for kernel in ordered),
        *(_layer(content, media_types.RUNTIME, runtime_title(name)) for name, content in sorted(runtimes.items())),
    ]
    config = OperatorConfig(
        package.manifest.name,
        package.manifest.version,
        package.digest,
        package.files[MANIFEST].decode(),
        tuple(KernelEntry(kernel.key, kernel.digest) for kernel in ordered),
        {name: sha256(content) for name, content in sorted(runtimes.items())},
    )
    return OperatorArtifact(config, tuple(layers))


def _layer(content: bytes, media_type: str, title: str) -> tuple[Descriptor, bytes]:
    return Descriptor.of(content, media_type, annotations={media_types.TITLE: title}), content
