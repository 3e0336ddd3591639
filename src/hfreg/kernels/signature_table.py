"""A signature as a C table for the front end of a kernel (`kernels/runtime/frontend.h` defines its types)."""

from __future__ import annotations

import json

import numpy as np

from hfreg.dtypes import DType
from hfreg.ops.manifest import Attribute, Axis
from hfreg.ops.patterns import Item
from hfreg.ops.signature import RuntimeAttribute, Signature, TensorSignature, Types

_KINDS = {
    "axis": "HFREG_AXIS",
    "group": "HFREG_GROUP",
    "optional": "HFREG_OPTIONAL",
    "one": "HFREG_ONE",
    "optional one": "HFREG_OPTIONAL_ONE",
    "split": "HFREG_SPLIT",
    "merge": "HFREG_MERGE",
}
INT32_MAX = 2**31 - 1


def format_signature(signature: Signature, types: Types) -> str:
    """The C source that defines `hfreg_kernel_signature` for a kernel of these element types."""
    axes = list(signature.axes)
    numbers = [str(number) for number in signature.runtime_attributes]
    locator = numbers.index(signature.locator) if signature.locator else -1
    located = axes.index(signature.attributes[signature.locator].locates) if signature.locator else 0
    output = signature.outputs[0].dtype(types)
    tensors = ",\n        ".join(_tensor(signature, tensor, axes, types) for tensor in signature.tensors)
    axis_rows = ",\n        ".join(_axis(signature, name, axes, numbers, output) for name in axes)
    attributes = ",\n    ".join(_attribute(number) for number in signature.runtime_attributes) or '{"", 0, 0, 0}'
    return f"""#include "frontend.h"

static const hfreg_attribute_spec attributes[] = {{
    {attributes},
}};

const hfreg_signature hfreg_kernel_signature = {{
    .operator_name = {_text(signature.operator)},
    .class_name = {_text(signature.class_name)},
    .tensor_count = {len(signature.tensors)},
    .axis_count = {len(axes)},
    .attribute_count = {len(numbers)},
    .locator = {locator},
    .located = {located},
    .attributes = attributes,
    .tensors = {{
        {tensors},
    }},
    .axes = {{
        {axis_rows},
    }},
}};
"""


def bits_of(value: float, dtype: DType) -> int:
    """The bits of a number in an element type, as an unsigned integer."""
    element = np.array(value, np.float64).astype(dtype.numpy)
    return int.from_bytes(element.tobytes(), "little")


def _text(text: str) -> str:
    return json.dumps(text)


def _tensor(signature: Signature, tensor: TensorSignature, axes: list[str], types: Types) -> str:
    dtype = tensor.dtype(types)
    flags = [
        name
        for name, is_set in (
            ("HFREG_IS_OUTPUT", tensor.is_output),
            ("HFREG_MAY_BE_ABSENT", tensor.is_optional),
            ("HFREG_ANY_STRIDE", signature.has_any_stride(tensor)),
        )
        if is_set
    ]
    items = ", ".join(_item(item, axes) for item in tensor.pattern.items) or "{0, 0, {0, 0, 0}}"
    return (
        f"{{{_text(tensor.name)}, {_text(str(tensor.pattern))}, {bits_of(tensor.default, dtype):#x}u, {dtype.dlpack}, "
        f"{dtype.bits}, {' | '.join(flags) or '0'}, {len(tensor.pattern.items)}, {{{items}}}}}"
    )


def _item(item: Item, axes: list[str]) -> str:
    places = [str(axes.index(name)) for name in item.axes]
    return f"{{{_KINDS[item.kind]}, {len(places)}, {{{', '.join(places or ['0'])}}}}}"


def _axis(signature: Signature, name: str, axes: list[str], numbers: list[str], output: DType) -> str:
    axis = signature.axes[name]
    flags = [
        flag
        for flag, is_set in (("HFREG_BROADCAST", axis.broadcast), ("HFREG_EMPTY_FILLS", axis.empty is not None))
        if is_set
    ]
    window = axis.window
    over, size = (axes.index(window.over), axes.index(window.size)) if window else (-1, -1)
    return (
        f"{{{_text(name)}, {bits_of(axis.empty or 0.0, output):#x}u, {axis.minimum}, "
        f"{axis.rank if name in signature.groups else 0}, {' | '.join(flags) or '0'}, "
        f"{_extent_attribute(axis, numbers)}, {over}, {size}, {_window(axis, signature, numbers)}}}"
    )


def _extent_attribute(axis: Axis, numbers: list[str]) -> int:
    """The attribute that gives the extent, or -1; one that only repeats what a shape says is not passed."""
    return numbers.index(axis.attribute) if axis.attribute in numbers else -1


def _window(axis: Axis, signature: Signature, numbers: list[str]) -> str:
    """The attributes of a window, comma-separated: stride, dilation, pads before and after, ceil mode."""
    if axis.window is None:
        return ", ".join(["-1"] * 5)
    position = axis.window.position
    pads = signature.attributes["pads"].length or 0 if "pads" in signature.attributes else 0
    names = (
        f"strides[{position}]",
        f"dilations[{position}]",
        f"pads[{position}]",
        f"pads[{position + pads // 2}]",
        "ceil_mode",
    )
    return ", ".join(str(numbers.index(name)) if name in numbers else "-1" for name in names)


def _attribute(number: RuntimeAttribute) -> str:
    low, high = _range(number.spec)
    return f"{{{_text(str(number))}, {low}, {high}, {int(number.spec.type == 'float')}}}"


def _range(spec: Attribute) -> tuple[int, int]:
    if spec.allowed is not None:
        values = [int(value) for value in spec.allowed if not isinstance(value, str)]
        return min(values), max(values)
    low = spec.minimum if spec.minimum is not None else -INT32_MAX
    return low, spec.maximum if spec.maximum is not None else INT32_MAX
