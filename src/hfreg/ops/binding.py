"""Binding: what the shapes of a call mean for the axes of a signature, or what does not fit.

It is the Python twin of `kernels/runtime/frontend.c`, which makes the same checks inside every kernel; a test holds
the two against each other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from hfreg.errors import RunError
from hfreg.ops.manifest import Window
from hfreg.ops.manifest_checks import ATTRIBUTE_REFERENCE
from hfreg.ops.patterns import Item, Pattern
from hfreg.ops.signature import Attributes, Shape, Signature, TensorSignature

STEP_LIMIT = 65535
"""The largest stride and dilation of a window. With `PADDED_LIMIT`, it keeps a kernel's 32-bit coordinates in range:
`frontend.c` has the derivation."""
PADDED_LIMIT = 1 << 29
"""The largest extent, with its padding, of an axis that windows slide along."""
PLANE_LIMIT = 1 << 29
"""Elements of the padded copy of one image that a contraction of windows makes."""

PartialShape = tuple[int | None, ...]
"""A shape in which None stands for an extent that is not known; it fits everything."""


@dataclass(frozen=True, slots=True)
class Binding:
    """What a call's shapes mean."""

    extents: dict[str, Shape]
    """The extents of each axis (one number) and group (any number). From partial shapes they are partial too."""
    attributes: Attributes
    """The attributes with defaults filled in and automatic padding worked out."""

    def shape(self, pattern: Pattern) -> Shape:
        """The shape of a tensor that has this pattern, absent axes left out where no tensor has them."""
        shape: list[int | None] = []
        for item in pattern.items:
            extents = [extent for name in item.axes for extent in self.extents[name]]
            if item.kind == "split":
                shape.append(_product(extents))
            elif item.kind == "one":
                shape.append(1)
            else:
                shape.extend(extents)
        return tuple(shape)  # type: ignore[arg-type]


class ShapeError(RunError):
    """The shapes or attributes of a call do not fit the operator."""


def bind(signature: Signature, shapes: Sequence[PartialShape | None], attributes: Attributes) -> Binding:
    """Find the extents of all axes from the shapes of the inputs.

    Args:
        signature: the signature of an attribute class.
        shapes: one shape for each input, None for an absent optional one.
        attributes: all attributes, as `complete_attributes` gives them.

    Raises:
        ShapeError: the shapes or attributes do not fit this class.
    """
    return _Binder(signature, attributes).run(shapes)


def select(
    candidates: Sequence[Signature], shapes: Sequence[PartialShape | None], attributes: Attributes
) -> tuple[Signature, Binding]:
    """The first class that serves a call.

    Raises:
        ShapeError: none does; the message is that of the most general class, which stands last.
    """
    problem = ShapeError("the operator has no attribute class", where=candidates[0].operator if candidates else "")
    for signature in candidates:
        try:
            return signature, bind(signature, shapes, attributes)
        except ShapeError as error:
            problem = error
    raise problem


class _Binder:
    """One run of `bind`. An extent that is None is not known, and fits every other one."""

    def __init__(self, signature: Signature, attributes: Attributes) -> None:
        self.signature = signature
        self.attributes = _without_ceil_mode(attributes)
        self.extents: dict[str, list[int | None]] = {}
        self.owner: dict[str, str] = {}

    def run(self, shapes: Sequence[PartialShape | None]) -> Binding:
        inputs = self.signature.inputs
        if len(shapes) != len(inputs):
            raise self.error(f"called with {len(shapes)} inputs, expected {len(inputs)}")
        self.fixed_attributes()
        self.attribute_axes()
        for tensor, shape in zip(inputs, shapes, strict=True):
            if shape is not None:
                self.tensor(tensor, shape)
            elif not tensor.is_optional:
                raise self.error(f"{tensor.name} is missing")
        self.windows([tensor for tensor, shape in zip(inputs, shapes, strict=True) if shape is not None])
        for tensor in self.signature.outputs:
            for name in tensor.pattern.axes:
                self.known(name)
        for name, axis in self.signature.axes.items():
            smallest = min((extent for extent in self.extents.get(name, []) if extent is not None), default=None)
            if smallest is not None and smallest < axis.minimum:
                raise self.error(f"{name} is {smallest}, expected at least {axis.minimum}")
        self.attributes_from_axes()
        bound = {name: tuple(extents) for name, extents in self.extents.items()}
        return Binding(bound, self.attributes)  # type: ignore[arg-type]

    def known(self, name: str) -> list[int | None]:
        if name not in self.extents:
            raise self.error(f"nothing gives the extent of {name}")
        return self.extents[name]

    def error(self, message: str) -> ShapeError:
        return ShapeError(message, where=self.signature.operator)

    def fixed_attributes(self) -> None:
        for name, value in self.signature.fixed.items():
            if name in self.attributes and self.attributes[name] != value:
                raise self.error(f"{name} is {self.attributes[name]!r}, expected {value!r}")

    def attribute_axes(self) -> None:
        for name, axis in self.signature.axes.items():
            match = ATTRIBUTE_REFERENCE.fullmatch(axis.attribute)
            value = self.attributes.get(match["name"]) if match else None
            if match is None or value is None:
                continue
            number = value[int(match["index"])] if isinstance(value, list) and match["index"] else value
            self.extents[name] = [int(number)]  # type: ignore[arg-type]
            self.owner[name] = f"attribute {match['name']}"

    def attributes_from_axes(self) -> None:
        for name, spec in self.signature.attributes.items():
            if spec.from_axes and name not in self.attributes | self.signature.fixed:
                extents = [_product(self.known(axis)) for axis in spec.from_axes]
                if None not in extents:
                    self.attributes[name] = extents if spec.type == "ints" else extents[0]  # type: ignore[assignment]

    def tensor(self, tensor: TensorSignature, shape: PartialShape) -> None:
        at = 0
        for item, taken in zip(tensor.pattern.items, self.match(tensor, shape), strict=True):
            part = shape[at : at + taken]
            at += taken
            if item.kind == "group":
                self.group(tensor, shape, item.axis, part)
            elif item.kind == "split":
                self.split(tensor, shape, item, part[0])
            elif item.kind == "merge":
                for name, extent in zip(item.axes, part, strict=True):
                    self.axis(tensor, shape, name, extent)
            elif item.kind in ("one", "optional one"):
                if part and part[0] not in (1, None):
                    raise self.misfit(tensor, shape)
            elif part:
                self.axis(tensor, shape, item.axis, part[0])
            else:
                self.extents.setdefault(item.axis, [])

    def match(self, tensor: TensorSignature, shape: PartialShape) -> list[int]:
        """How many axes of the shape each item of the pattern takes."""
        items = tensor.pattern.items
        takes = [item.takes for item in items]
        spare = len(shape) - sum(takes)
        located, position = self.located(tensor, shape)
        for index, item in enumerate(items):
            if item.kind in ("optional", "optional one"):
                known = self.extents.get(item.axis)
                takes[index] = int(spare > 0 if known is None else len(known) > 0)
                spare -= takes[index]
        if spare < 0:
            raise self.misfit(tensor, shape)
        groups = len(tensor.pattern.groups)
        for index, item in enumerate(items):
            if item.kind == "group":
                takes[index] = min(position, spare) if groups == 2 and located is not None else spare
                spare -= takes[index]
                groups = 1
        if spare != 0:
            raise self.misfit(tensor, shape)
        if located is not None and sum(takes[:located]) != position:
            name = self.signature.locator
            raise self.error(f"{name} is {self.attributes[name]}, which the class {self.signature.class_name} has not")
        return takes

    def located(self, tensor: TensorSignature, shape: PartialShape) -> tuple[int | None, int]:
        """The item that the locating attribute places, and the place."""
        name, rank = self.signature.locator, len(shape)
        target = self.signature.attributes[name].locates if name else ""
        for index, item in enumerate(tensor.pattern.items):
            if item.kind in ("axis", "group") and item.axis == target and len(tensor.pattern.items) > 1:
                given = int(self.attributes[name])  # type: ignore[arg-type]
                if not rank:
                    raise self.misfit(tensor, shape)
                if not -rank <= given < rank:
                    raise self.error(
                        f"{name} is {given}, expected {-rank} to {rank - 1}: {tensor.name} has {rank} axes"
                    )
                return index, given % rank
        return None, 0

    def misfit(self, tensor: TensorSignature, shape: PartialShape, why: str = "") -> ShapeError:
        return self.error(f"{tensor.name} has shape {_show(shape)}, expected [{tensor.pattern}]{why}")

    def conflict(self, tensor: TensorSignature, shape: PartialShape, axis: str, known: int | None) -> ShapeError:
        source = f" in {self.owner[axis]}" if axis in self.owner else ""
        return self.misfit(tensor, shape, f": {axis} is {known}{source}")

    def axis(self, tensor: TensorSignature, shape: PartialShape, axis: str, extent: int | None) -> None:
        known = self.extents.setdefault(axis, [extent])
        self.owner.setdefault(axis, tensor.name)
        if not known:
            raise self.conflict(tensor, shape, axis, 1)
        if known[0] is None:
            known[0] = extent
        elif extent not in (known[0], None):
            raise self.conflict(tensor, shape, axis, known[0])

    def split(self, tensor: TensorSignature, shape: PartialShape, item: Item, extent: int | None) -> None:
        outer, inner = item.axes
        known, other = (outer, inner) if outer in self.extents else (inner, outer)
        parts = _product(self.known(known))
        if parts is None or extent is None:
            self.axis(tensor, shape, other, None)
            return
        if parts <= 0 or extent % parts:
            raise self.conflict(tensor, shape, known, parts)
        self.axis(tensor, shape, other, extent // parts)

    def group(self, tensor: TensorSignature, shape: PartialShape, axis: str, part: PartialShape) -> None:
        if axis not in self.extents:
            self.extents[axis] = list(part)
            self.owner[axis] = tensor.name
            return
        known = self.extents[axis]
        rank = max(len(known), len(part))
        left, right = _aligned(known, rank), _aligned(part, rank)
        free = (None, 1) if self.signature.axes[axis].broadcast else (None,)
        fits = all(a == b or a in free or b in free for a, b in zip(left, right, strict=True))
        if not self.signature.axes[axis].broadcast:
            fits = fits and len(known) == len(part)
        if not fits:
            raise self.misfit(tensor, shape, f": {axis} is {_show(known)} in {self.owner[axis]}")
        self.extents[axis] = [_stretch(a, b) for a, b in zip(left, right, strict=True)]

    def windows(self, given: Sequence[TensorSignature]) -> None:
        for name, axis in self.signature.axes.items():
            if axis.window:
                self.window(name, axis.window)
        for tensor in given:
            self.check_plane(tensor)

    def window(self, name: str, window: Window) -> None:
        """Window positions: (padded - dilated window) / stride + 1, rounded down or up (ONNX Conv-11, MaxPool-12)."""
        position = window.position
        size, extent = _product(self.known(window.size)), _product(self.known(window.over))
        if size is None or extent is None:
            self.extents[name] = [None]
            return
        stride, dilation = self.list_item("strides", position, 1), self.list_item("dilations", position, 1)
        reach = dilation * (size - 1) + 1
        before, after = self.padding(position, extent, stride, reach)
        self.check_limits(window)
        room = extent + before + after - reach
        if room < 0 or size < 1:
            raise self.error(
                f"the window spans {reach} along {window.over}, "
                f"more than the {extent + before + after} of the padded input"
            )
        positions = room // stride + 1
        if self.attributes.get("ceil_mode") and room % stride and positions * stride < extent + before:
            positions += 1
        self.extents[name] = [positions]

    def check_limits(self, window: Window) -> None:
        """Refuse windows for which the 32-bit arithmetic of a kernel might overflow."""
        position, pads = window.position, self.attributes.get("pads")
        half = len(pads) // 2 if isinstance(pads, list) else 0
        steps = [("strides", position, STEP_LIMIT), ("dilations", position, STEP_LIMIT)]
        sides = [("pads", position, PADDED_LIMIT), ("pads", position + half, PADDED_LIMIT)] if half else []
        for name, place, limit in steps + sides:
            value = self.list_item(name, place, 1)
            if value > limit:
                raise self.error(f"{name}[{place}] is {value}, expected at most {limit}")
        padded = self.padded(window)
        if padded is not None and padded > PADDED_LIMIT:
            raise self.error(f"{window.over} with its padding is {padded}, expected at most {PADDED_LIMIT}")

    def padded(self, window: Window) -> int | None:
        """The extent that windows slide along, with its padding."""
        extent, pads = _product(self.known(window.over)), self.attributes.get("pads")
        if extent is None or not isinstance(pads, list):
            return extent
        return extent + int(pads[window.position]) + int(pads[window.position + len(pads) // 2])

    def check_plane(self, tensor: TensorSignature) -> None:
        """Refuse a contraction of windows whose padded copy of one image is too large: `frontend.c` derives the sum."""
        windows = {axis.window.over: axis.window for axis in self.signature.axes.values() if axis.window}
        kept = {name for output in self.signature.outputs for name in output.pattern.axes}
        axes = [name for name in tensor.pattern.axes if name in windows or name not in kept]
        padded = [self.padded(windows[name]) for name in axes if name in windows]
        contracted = [_product(self.extents.get(name, [])) for name in axes if name not in windows]
        known = [extent for extent in padded if extent is not None]
        channels = _product(contracted)
        if not known or len(known) < len(padded) or not contracted or channels is None:
            return
        strides = [self.list_item("strides", windows[name].position, 1) for name in axes if name in windows]
        area = math.prod(extent + 2 * stride for extent, stride in zip(known, strides, strict=True))
        channel = area + math.prod(strides) * max(known) + 32
        if (channels + 2) * channel + 4096 >= PLANE_LIMIT:
            raise self.error(
                f"{tensor.name} padded to whole strides has 2^29 elements or more along {', '.join(axes)}, "
                "which this kernel does not support"
            )

    def list_item(self, name: str, position: int, otherwise: int) -> int:
        values = self.attributes.get(name)
        return values[position] if isinstance(values, list) else otherwise

    def padding(self, position: int, extent: int, stride: int, reach: int) -> tuple[int, int]:
        """The pads of one axis; automatic ones are written into the attribute `pads`."""
        pads = self.attributes.get("pads")
        if not isinstance(pads, list):
            return 0, 0
        count = len(pads) // 2
        mode = self.attributes.get("auto_pad", "NOTSET")
        if mode != "NOTSET":
            total = max((math.ceil(extent / stride) - 1) * stride + reach - extent, 0) if mode != "VALID" else 0
            small, large = total // 2, total - total // 2
            before, after = (small, large) if mode == "SAME_UPPER" else (large, small)
            pads = [*pads]
            pads[position], pads[position + count] = before, after
            self.attributes["pads"] = pads
        return pads[position], pads[position + count]


def _without_ceil_mode(attributes: Attributes) -> Attributes:
    """Automatic padding leaves nothing to round up.

    ONNX MaxPool-12 gives VALID ceil((extent - window + 1) / stride) positions with `ceil_mode`, which is what the
    other formula, rounded down, gives without it. (onnxruntime differs: it rounds that one up.)
    """
    is_automatic = "ceil_mode" in attributes and attributes.get("auto_pad", "NOTSET") != "NOTSET"
    return attributes | ({"ceil_mode": 0} if is_automatic else {})


def _product(extents: Sequence[int | None]) -> int | None:
    numbers = [extent for extent in extents if extent is not None]
    return math.prod(numbers) if len(numbers) == len(extents) else None


def _aligned(extents: Sequence[int | None], rank: int) -> list[int | None]:
    """Extents of 1 in front, up to a rank."""
    return [*([1] * (rank - len(extents))), *extents]


def _stretch(a: int | None, b: int | None) -> int | None:
    """The extent that two inputs broadcast to."""
    if a is None or b is None:
        known = b if a is None else a
        return known if known != 1 else None
    return b if a == 1 else a


def _show(shape: Sequence[int | None]) -> str:
    return "[" + ", ".join("?" if extent is None else str(extent) for extent in shape) + "]"
