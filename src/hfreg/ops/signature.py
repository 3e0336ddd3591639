"""The signature of an operator for one attribute class: tensors over named axes, and the attributes that are left.

`hfreg.ops.binding` holds a call against it.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from hfreg.dtypes import DTYPES, DType
from hfreg.errors import RunError
from hfreg.ops.manifest import Attribute, AttributeClass, AttributeValue, Axis, Manifest
from hfreg.ops.manifest_checks import value_problem
from hfreg.ops.patterns import Pattern

Shape = tuple[int, ...]
Attributes = dict[str, AttributeValue]
Types = dict[str, DType]
"""The element type that each type variable stands for."""


@dataclass(frozen=True, slots=True)
class TensorSignature:
    """One input or output."""

    name: str
    type: str
    """A type variable or an element type."""
    pattern: Pattern
    is_output: bool = False
    is_optional: bool = False
    default: float = 0.0

    def dtype(self, types: Types) -> DType:
        return types[self.type] if self.type in types else DTYPES[self.type]


@dataclass(frozen=True, slots=True)
class RuntimeAttribute:
    """One number that a kernel takes when it is called."""

    name: str
    index: int | None
    """The place in a list attribute."""
    spec: Attribute

    def __str__(self) -> str:
        return self.name if self.index is None else f"{self.name}[{self.index}]"

    def of(self, attributes: Attributes) -> int | float:
        value = attributes[self.name]
        number = value[self.index] if isinstance(value, list) and self.index is not None else value
        assert isinstance(number, (int, float))
        return float(number) if self.spec.type == "float" else int(number)


@dataclass(frozen=True)
class Signature:
    """The signature of one attribute class."""

    operator: str
    class_name: str
    tensors: tuple[TensorSignature, ...]
    """Inputs, then outputs."""
    axes: dict[str, Axis]
    """Every axis and group, in the order of first appearance."""
    attributes: dict[str, Attribute]
    """All attributes of the operator."""
    fixed: Attributes
    """The values that are compiled in."""

    @classmethod
    def of(cls, manifest: Manifest, attribute_class: AttributeClass) -> Signature:
        tensors = tuple(
            TensorSignature(
                name,
                tensor.type,
                Pattern.parse(attribute_class.shapes.get(name, tensor.shape)),
                is_output=name in manifest.outputs,
                is_optional=tensor.optional,
                default=tensor.default,
            )
            for name, tensor in manifest.tensors.items()
        )
        names = [axis for tensor in tensors for axis in tensor.pattern.axes]
        needed = [window.size for axis in names if axis in manifest.axes and (window := manifest.axes[axis].window)]
        axes = {name: manifest.axes.get(name, Axis()) for name in (*names, *needed)}
        fixed: Attributes = {
            name: attribute.allowed[0]
            for name, attribute in manifest.attributes.items()
            if attribute.allowed is not None and len(attribute.allowed) == 1
        }
        return cls(
            manifest.name, attribute_class.name, tensors, axes, manifest.attributes, fixed | attribute_class.attributes
        )

    @property
    def inputs(self) -> tuple[TensorSignature, ...]:
        return tuple(tensor for tensor in self.tensors if not tensor.is_output)

    @property
    def outputs(self) -> tuple[TensorSignature, ...]:
        return tuple(tensor for tensor in self.tensors if tensor.is_output)

    @cached_property
    def groups(self) -> frozenset[str]:
        return frozenset(name for tensor in self.tensors for name in tensor.pattern.groups)

    def view_axes(self, tensor: TensorSignature) -> tuple[str, ...]:
        """The axes of the canonical view that the front end makes of a tensor.

        A group with a rank above 1 has numbered axes, the innermost with the number 0: `i1`, `i0`. Merged axes `{h w}`
        are `h_w`.
        """
        names: list[str] = []
        for item in tensor.pattern.items:
            rank = self.axes[item.axis].rank if item.kind == "group" else 1
            if rank > 1:
                names.extend(f"{item.axis}{place}" for place in reversed(range(rank)))
            elif item.kind == "merge":
                names.append("_".join(item.axes))
            else:
                names.extend(item.axes)
        return tuple(names)

    def view_extents(self, extents: Mapping[str, Shape]) -> dict[str, int]:
        """The extents of the axes of the views, but of numbered ones: how a group is divided depends on strides.

        Args:
            extents: the extents of each axis and group, as a binding has them.
        """
        items = [item for tensor in self.tensors for item in tensor.pattern.items]
        whole = [item for item in items if item.kind != "group" or self.axes[item.axis].rank == 1]
        merged = {"_".join(item.axes): item.axes for item in whole if item.kind == "merge"}
        single = {name: (name,) for item in whole if item.kind != "merge" for name in item.axes}
        return {name: math.prod(math.prod(extents[a]) for a in axes) for name, axes in (merged | single).items()}

    def has_any_stride(self, tensor: TensorSignature) -> bool:
        """Whether the last axis of an input's view may have another stride than 1: where it broadcasts."""
        items = tensor.pattern.items
        return (
            not tensor.is_output and bool(items) and items[-1].kind == "group" and self.axes[items[-1].axis].broadcast
        )

    @cached_property
    def locator(self) -> str:
        """The attribute that locates an axis, empty where none does in this class."""
        for name, attribute in self.attributes.items():
            if attribute.locates in self.axes:
                return name
        return ""

    @cached_property
    def runtime_attributes(self) -> tuple[RuntimeAttribute, ...]:
        """The numbers that a kernel of this class takes, in order; lists are flattened."""
        numbers: list[RuntimeAttribute] = []
        for name, spec in self.attributes.items():
            if name in self.fixed or spec.optional or spec.type == "string" or (spec.locates and name != self.locator):
                continue
            indices: Sequence[int | None] = range(spec.length or 0) if spec.type == "ints" else (None,)
            numbers.extend(RuntimeAttribute(name, index, spec) for index in indices)
        return tuple(numbers)


def complete_attributes(manifest: Manifest, given: Mapping[str, AttributeValue]) -> Attributes:
    """Check given attributes and add the defaults of the others; floats are rounded to float32, as ONNX has them.

    Raises:
        RunError: an attribute is unknown, missing, or has a value that the package does not serve.
    """
    for name, value in given.items():
        if name not in manifest.attributes:
            known = ", ".join(manifest.attributes) or "none"
            raise RunError(f"{manifest.name} has no attribute {name!r}", hint=f"its attributes: {known}")
        if problem := value_problem(manifest.attributes[name], value):
            raise RunError(problem, where=f"{manifest.name}: attribute {name}")
    complete = dict(given)
    for name, attribute in manifest.attributes.items():
        if name in complete or attribute.optional or attribute.from_axes:
            continue
        if attribute.default is None:
            raise RunError(f"{manifest.name} needs the attribute {name!r}")
        complete[name] = attribute.default
    return {name: _rounded(manifest.attributes[name], value) for name, value in complete.items()}


def _rounded(attribute: Attribute, value: AttributeValue) -> AttributeValue:
    """A value of type float as ONNX has it: in float32."""
    return ctypes.c_float(value).value if attribute.type == "float" and isinstance(value, (int, float)) else value


def signatures(manifest: Manifest) -> tuple[Signature, ...]:
    """The signatures of all attribute classes, in the order in which they are tried."""
    return tuple(Signature.of(manifest, entry) for entry in manifest.classes)
