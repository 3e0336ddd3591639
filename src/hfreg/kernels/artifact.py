"""What a build makes: a kernel, named by what it is for, and by the digest of its bytes. What else has a name there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import Any

from hfreg.digests import sha256
from hfreg.dtypes import DTYPES
from hfreg.errors import UsageError
from hfreg.ops.manifest import Manifest
from hfreg.ops.signature import Types

SOURCE_TITLE = "source.tar"


def runtime_title(target: str) -> str:
    """The name of a target's host runtime."""
    return f"runtime.{target}.so"


@dataclass(frozen=True, slots=True, order=True)
class KernelKey:
    """Which kernel of an op version: the coordinates of a cell of the matrix, and the kernel language."""

    operator: str
    types: tuple[tuple[str, str], ...]
    """Type variables and what they stand for, sorted by variable."""
    attribute_class: str
    target: str
    language: str

    @property
    def slug(self) -> str:
        """A name for files and people: `softmax.float32.last.x86_64-v4.halide`."""
        return ".".join((self.operator, self.type_slug, self.attribute_class, self.target, self.language))

    @property
    def type_slug(self) -> str:
        return "-".join(name for _, name in self.types) or "any"

    @property
    def dtypes(self) -> Types:
        return {variable: DTYPES[name] for variable, name in self.types}

    def as_json(self) -> dict[str, Any]:
        return {
            "operator": self.operator,
            "types": dict(self.types),
            "attributeClass": self.attribute_class,
            "target": self.target,
            "language": self.language,
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> KernelKey:
        return cls(
            value["operator"],
            tuple(sorted(value["types"].items())),
            value["attributeClass"],
            value["target"],
            value["language"],
        )


@dataclass(frozen=True)
class Kernel:
    """A built kernel."""

    key: KernelKey
    content: bytes
    """The shared object, or the WebAssembly module."""
    notes: dict[str, Any] = field(default_factory=dict)
    """What the kernel language says of the build: which schedule was used, seconds of compilation, its variants."""

    @property
    def variants(self) -> dict[str, str]:
        """Names and conditions of its bodies, in the order in which they are tried; empty where it has one only."""
        return dict(self.notes.get("variants", {}))

    @cached_property
    def digest(self) -> str:
        return sha256(self.content)


def type_tuples(manifest: Manifest) -> list[tuple[tuple[str, str], ...]]:
    """Every combination of element types that the package serves."""
    choices = [[(variable, name) for name in names] for variable, names in sorted(manifest.types.items())]
    return [tuple(choice) for choice in product(*choices)]


def plan_kernels(manifest: Manifest, languages: tuple[str, ...], target: str) -> Iterator[KernelKey]:
    """The kernels that a package has for one target.

    Args:
        manifest: the package's manifest.
        languages: the kernel languages to plan for.
        target: the target's name.

    Raises:
        UsageError: the package has no kernels in one of the languages.
    """
    for language in languages:
        entry = manifest.languages.get(language)
        if entry is None and language != "halide":
            known = ", ".join(("halide", *manifest.languages))
            raise UsageError(f"{manifest.name} has no kernels in the language {language!r}", hint=f"it has: {known}")
        if entry is not None and entry.targets and target not in entry.targets:
            continue
        for attribute_class in manifest.classes:
            if entry is not None and entry.classes and attribute_class.name not in entry.classes:
                continue
            for types in type_tuples(manifest):
                yield KernelKey(manifest.name, types, attribute_class.name, target, language)
