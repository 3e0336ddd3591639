"""The registry: published op versions and their passports.

Reading verifies digests at every step; whether a passport may be believed is the verifier's matter
(`hfreg.registry.passports`). Publishing adds, and never changes or removes.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from hfreg.digests import short
from hfreg.errors import RegistryError, UsageError
from hfreg.files import kind_of
from hfreg.kernels.artifact import SOURCE_TITLE, runtime_title
from hfreg.ops.manifest import Manifest as OpManifest
from hfreg.ops.package import load_manifest
from hfreg.registry import media_types
from hfreg.registry.archive import unpack
from hfreg.registry.artifact import GOLDEN_TITLE, OperatorArtifact, OperatorConfig, operator_manifest
from hfreg.registry.layout import Layout
from hfreg.registry.oci import EMPTY_CONFIG, Descriptor, Manifest
from hfreg.resources import data_home
from hfreg.versions import NAME, Reference, Version


@dataclass(frozen=True)
class PassportBundles:
    """The bundles of one op version on one target, as stored; nothing of them is verified yet."""

    target: str
    bundles: tuple[bytes, ...]


@dataclass(frozen=True)
class OpVersion:
    """A published op version."""

    layout: Layout
    entry: Descriptor
    manifest: Manifest
    config: OperatorConfig

    @property
    def reference(self) -> str:
        return f"{self.config.name}@{self.config.version}"

    @cached_property
    def op_manifest(self) -> OpManifest:
        """The op manifest as the config has it: to be relied on only after `hfreg.registry.passports` has verified."""
        return load_manifest(self.config.manifest, f"{self.reference}: op.toml")

    @property
    def descriptor(self) -> Descriptor:
        """How passports refer to it."""
        return Descriptor(self.entry.media_type, self.entry.digest, self.entry.size)

    def layer(self, title: str) -> bytes:
        """The content of a layer.

        Raises:
            RegistryError: there is no such layer, or its blob is damaged.
        """
        for layer in self.manifest.layers:
            if layer.title == title:
                return self.layout.blob(layer)
        raise RegistryError(f"has no layer {title!r}", where=self.reference)

    def files(self) -> dict[str, bytes]:
        """The files of the op package, source and golden tests."""
        titles = (SOURCE_TITLE, GOLDEN_TITLE)
        archives = [unpack(self.layer(title), where=f"{self.reference}/{title}") for title in titles]
        return {name: content for files in archives for name, content in files.items()}

    def passports(self) -> list[PassportBundles]:
        """The passports that refer to this version, by target.

        Raises:
            RegistryError: a passport is damaged, or does not say what it is about.
        """
        found = []
        for entry in self.layout.index():
            if entry.artifact_type != media_types.PASSPORT:
                continue
            manifest = self.layout.manifest(entry)
            target = manifest.annotations.get(media_types.TARGET)
            if manifest.subject is None or target is None:
                raise RegistryError("a passport that refers to nothing, or to no target", where=entry.digest)
            if manifest.subject.digest == self.entry.digest:
                bundles = tuple(self.layout.blob(layer) for layer in manifest.layers)
                found.append(PassportBundles(target, bundles))
                if manifest != _passport_manifest(found[-1], self.descriptor):
                    raise RegistryError("a passport that is not in the one form that hfreg writes", where=entry.digest)
        return sorted(found, key=lambda passport: passport.target)


class Registry:
    """A registry in a folder."""

    def __init__(self, root: Path) -> None:
        self.layout = Layout(root)

    @classmethod
    def open(cls, root: Path | None = None) -> Registry:
        """The registry at a path, by default `$HFREG_REGISTRY` or hfreg's data folder, to be read.

        Raises:
            UsageError: the path that the caller or the variable names is no folder.
        """
        folder = root or default_registry()
        is_named = root is not None or bool(os.environ.get("HFREG_REGISTRY"))
        if is_named and kind_of(folder) != "folder":
            raise UsageError("there is no registry", where=str(folder), hint="`hfreg publish` makes one")
        return cls(folder)

    def versions(self) -> dict[str, dict[Version, Descriptor]]:
        """The published versions of every operator, by name.

        Raises:
            RegistryError: the index is damaged, or has an entry that is neither an op version nor a passport.
        """
        found: dict[str, dict[Version, Descriptor]] = {}
        for entry in self.layout.index():
            if entry.artifact_type == media_types.PASSPORT and media_types.REF_NAME not in entry.annotations:
                continue
            name, version = self._named(entry)
            if version in found.setdefault(name, {}):
                raise RegistryError(f"the index has two entries for {name}@{version}", where=self._where)
            found[name][version] = entry
        return {name: dict(sorted(found[name].items())) for name in sorted(found)}

    def _named(self, entry: Descriptor) -> tuple[str, Version]:
        """The name and version of an op version's entry."""
        annotations = entry.annotations
        name, version = annotations.get(media_types.TITLE, ""), annotations.get(media_types.VERSION, "")
        is_named = NAME.fullmatch(name) and annotations.get(media_types.REF_NAME) == ref_name(name, version)
        with contextlib.suppress(UsageError):
            if entry.artifact_type == media_types.OPERATOR and is_named:
                return name, Version(version)
        raise RegistryError(
            f"an entry of the index is misnamed: {entry.artifact_type} {annotations}", where=self._where
        )

    @property
    def _where(self) -> str:
        return str(self.layout.root)

    def resolve(self, reference: Reference) -> OpVersion:
        """The highest version that a reference admits.

        Raises:
            UsageError: there is none.
            RegistryError: the registry is damaged.
        """
        published = self.versions()
        if reference.name not in published:
            known = ", ".join(published) or "nothing"
            raise UsageError(f"no operator {reference.name!r} in the registry {self._where}", hint=f"it has {known}")
        versions = published[reference.name]
        best = reference.best(versions)
        if best is None:
            raise UsageError(f"no version for {reference}", hint=f"published: {', '.join(map(str, versions))}")
        return self.open_version(versions[best])

    def open_version(self, entry: Descriptor) -> OpVersion:
        """The version that an entry of the index names.

        Raises:
            RegistryError: it is damaged.
        """
        manifest = self.layout.manifest(entry)
        where = f"{entry.annotations.get(media_types.REF_NAME, entry.digest)}: config"
        config = OperatorConfig.parse(self.layout.blob(manifest.config), where=where)
        _check_config(manifest, config, where)
        return OpVersion(self.layout, entry, manifest, config)

    def published(self, name: str, version: str) -> OpVersion | None:
        """One exact version, or None."""
        entry = self.versions().get(name, {}).get(Version(version))
        return self.open_version(entry) if entry else None

    def all_versions(self) -> list[OpVersion]:
        """Every published version.

        Raises:
            RegistryError: something that the index names is damaged, a passport included.
        """
        for entry in self.layout.index():
            self.layout.manifest(entry)
        return [self.open_version(entry) for versions in self.versions().values() for entry in versions.values()]

    def publish(
        self, artifact: OperatorArtifact, passports: Sequence[PassportBundles]
    ) -> Literal["published", "already there"]:
        """Add an op version with its passports in one step.

        Raises:
            RegistryError: the version is published with other content.
            MachineError: another writer holds the lock too long, or the disk is full.
        """
        manifest, config = artifact.manifest, artifact.config
        purpose = f"publishing {config.name}@{config.version}"
        with self.layout.writing(purpose):
            existing = self.published(config.name, config.version)
            if existing is not None:
                check_same(existing, artifact)
                return "already there"
            subject = Descriptor.of(manifest.dump(), media_types.MANIFEST)
            referrers = [_passport_manifest(passport, subject) for passport in passports]
            contents = [*artifact.contents, *(b for passport in passports for b in passport.bundles)]
            contents += [referrer.dump() for referrer in referrers]
            entries = [manifest.descriptor(ref_name=ref_name(config.name, config.version))]
            entries += [referrer.descriptor() for referrer in referrers]
            self.layout.add(contents, entries)
        return "published"


def _check_config(manifest: Manifest, config: OperatorConfig, where: str) -> None:
    """The manifest is the one that the config makes: the same layers, each of them once, in the same order."""
    archives = [(media_types.SOURCE, SOURCE_TITLE), (media_types.GOLDEN, GOLDEN_TITLE)]
    promised = [(media_types.KERNEL, entry.key.slug, entry.digest) for entry in config.kernels]
    promised += [(media_types.RUNTIME, runtime_title(name), value) for name, value in sorted(config.runtimes.items())]
    layers = [(layer.media_type, layer.title, layer.digest) for layer in manifest.layers]
    titles = {layer.title for layer in manifest.layers}
    if [layer[:2] for layer in layers[:2]] != archives or layers[2:] != promised or len(titles) != len(layers):
        raise RegistryError("the config and the layers of the artifact do not agree", where=where)
    if manifest != operator_manifest(config, manifest.layers):
        raise RegistryError("the config and the manifest name different versions or media types", where=where)


def check_same(existing: OpVersion, artifact: OperatorArtifact) -> None:
    """Check that an artifact is what is published.

    Raises:
        RegistryError: something differs; the message names the first thing, with both digests.
    """
    if existing.entry.digest == Descriptor.of(artifact.manifest.dump(), "").digest:
        return
    old = {layer.title: layer.digest for layer in existing.manifest.layers}
    new = {layer.title: layer.digest for layer in artifact.manifest.layers}
    title = next((t for t in (*new, *old) if old.get(t) != new.get(t)), "config")
    was, now = (short(digests.get(title, "")) or "nothing" for digests in (old, new))
    raise RegistryError(
        f"is published with other content: {title} is {was} there and {now} here",
        where=existing.reference,
        hint="a published version never changes: raise the version in op.toml",
    )


def _passport_manifest(passport: PassportBundles, subject: Descriptor) -> Manifest:
    return Manifest(
        artifact_type=media_types.PASSPORT,
        config=Descriptor.of(EMPTY_CONFIG, media_types.EMPTY),
        layers=tuple(Descriptor.of(bundle, media_types.BUNDLE) for bundle in passport.bundles),
        annotations={media_types.TARGET: passport.target},
        subject=subject,
    )


def ref_name(name: str, version: str) -> str:
    """The name that an op version goes by in an index."""
    return f"{name}:{version}"


def default_registry() -> Path:
    """`$HFREG_REGISTRY`, or hfreg's data folder."""
    explicit = os.environ.get("HFREG_REGISTRY")
    return Path(explicit) if explicit else data_home()
