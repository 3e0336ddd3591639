"""A case: one call of an operator, with inputs of concrete values."""

from __future__ import annotations

from dataclasses import dataclass

from hfreg.arrays import Array
from hfreg.ops.signature import Attributes


@dataclass(frozen=True)
class Case:
    """One call."""

    data_set: str
    """D0 (golden), D1 (distributions), D2 (special values) or D5 (shapes)."""
    name: str
    inputs: tuple[Array | None, ...]
    """Values of the kernel's own element types, with the strides that the kernel will see."""
    attributes: Attributes
    """All attributes, defaults filled in."""
    expected: tuple[Array, ...] | None = None
    """The stored result of a golden case; None: the reference works it out."""
    source: str = ""
    """Where a golden case comes from."""
    shift: int = 0
    """Elements by which the data is off a multiple of 64 bytes."""

    @property
    def label(self) -> str:
        return f"{self.data_set}/{self.name}"

    @property
    def call(self) -> str:
        """Shapes and attributes, for people: `[3, 5], none; axis=1`."""
        shapes = ", ".join("none" if array is None else str(list(array.shape)) for array in self.inputs)
        attributes = " ".join(f"{name}={value}" for name, value in self.attributes.items())
        return f"{shapes}; {attributes}" if attributes else shapes
