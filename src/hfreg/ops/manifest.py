"""The manifest of an op package: `op.toml`.

The model is the published JSON Schema. Checks that need more than one field (names that refer to each other) are in
`manifest_checks`; both kinds are reported together, each with its line, by `load_manifest`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from hfreg.dtypes import DTYPES

_NUMBER = r"(0|[1-9][0-9]*)"
_PRERELEASE = rf"({_NUMBER}|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
_BUILD = r"[0-9A-Za-z-]+"
NAME = r"^[a-z][a-z0-9]*(_[a-z0-9]+)*$"
VERSION = rf"^{_NUMBER}\.{_NUMBER}\.{_NUMBER}(-{_PRERELEASE}(\.{_PRERELEASE})*)?(\+{_BUILD}(\.{_BUILD})*)?$"
WORKLOAD_NAME = r"^[a-z0-9][a-z0-9-]*$"
FORMS = {
    NAME: "small letters, digits and single underscores, a letter first",
    VERSION: "a version such as 1.0.0 (SemVer)",
    WORKLOAD_NAME: "small letters, digits and hyphens",
}
"""What each pattern asks for, in words."""

Name = Annotated[str, StringConstraints(pattern=NAME)]
TypeName = Annotated[str, Field(json_schema_extra={"enum": list(DTYPES)})]
VersionText = Annotated[str, StringConstraints(pattern=VERSION)]
_Value = TypeVar("_Value")
Table = Annotated[dict[Name, _Value], Field(json_schema_extra={"additionalProperties": False})]
Function = Literal["exp", "log", "sin", "cos", "tanh", "sigmoid", "erf", "pow"]
AttributeValue = int | float | str | list[int]


class _Model(BaseModel):
    model_config = ConfigDict(
        extra="forbid", frozen=True, use_attribute_docstrings=True, strict=True, ser_json_inf_nan="constants"
    )


class Operator(_Model):
    """What is computed, in the terms of ONNX."""

    domain: str = ""
    """The operator's domain; empty for ONNX's own operators."""
    name: Annotated[str, StringConstraints(min_length=1)]
    """The operator's name in that domain, such as `Softmax`."""
    since_versions: Annotated[list[Annotated[int, Field(ge=1)]], Field(min_length=1)]
    """The operator versions whose meaning this package has, for the types that it lists."""


class Tensor(_Model):
    """An input or an output."""

    type: str
    """A type variable of `[types]`, or an element type."""
    shape: str
    """A shape pattern, such as `batch... m? k`."""
    optional: bool = False
    """Whether an input may be left out."""
    default: float = 0.0
    """What every element of an absent optional input counts as."""
    values: Literal["any", "positive"] = "any"
    """The values that an input can have where the operator means something by them."""
    limit: Annotated[float, Field(gt=0)] | None = None
    """The largest finite magnitude of an input for which accuracy is promised: beyond it, intermediate results that the
    specification computes in float32 may overflow. Infinities and NaN are not concerned."""
    is_weight: bool = False
    """Whether models hold it as a constant. In measurements a peer gets it as one, and may prepare it ahead of calls;
    our kernels get it with every call."""
    doc: str = ""
    """What it means."""


class Window(_Model):
    """An axis of window positions: its extent follows from the input, the window and the attributes.

    The attributes `strides`, `dilations`, `pads`, `ceil_mode` and `auto_pad` have their ONNX meaning; those that the
    manifest does not have take ONNX's defaults.
    """

    over: Name
    """The input axis that the window slides over."""
    size: Name
    """The axis of the window's own elements."""
    position: Annotated[int, Field(ge=0)]
    """The place of this axis in the attribute lists, from 0."""


class Axis(_Model):
    """What is special about an axis or a group of axes."""

    rank: Annotated[int, Field(ge=1, le=4)] = 1
    """Of a group: how many axes the kernel sees at most; the front end merges, and copies where it must."""
    broadcast: bool = False
    """Of a group: whether inputs broadcast over it, as NumPy does."""
    attribute: str = ""
    """The attribute that gives its extent: `group`, or `kernel_shape[0]`."""
    minimum: Annotated[int, Field(ge=0)] = 0
    """The smallest extent allowed."""
    empty: float | None = None
    """What every output element is where this axis has extent 0. For an axis that is reduced away."""
    window: Window | None = None
    """Set for an axis of window positions."""
    doc: str = ""


class Attribute(_Model):
    """An attribute of the operator. Strings and values that a class fixes are compiled in; others are run-time."""

    type: Literal["int", "ints", "float", "string"]
    default: AttributeValue | None = None
    """Its value where a node does not say; absent: a node must say it, unless it is optional."""
    optional: bool = False
    """It changes nothing that this package computes: a node may give an allowed value, and kernels do not see it."""
    from_axes: list[Name] = []
    """The axes whose extents it repeats, one for each value; a node need not say it (like `kernel_shape` of Conv)."""
    length: Annotated[int, Field(ge=1, le=8)] | None = None
    """Of `ints`: how many."""
    minimum: int | None = None
    maximum: int | None = None
    allowed: list[int | float | str] | None = None
    """The values that this package serves. With one value only, it is compiled in."""
    locates: str = ""
    """The axis, or group, whose place in the shape patterns this attribute gives (negative counts from the end)."""
    type_of: str = ""
    """The type variable whose ONNX type number this attribute gives; 0 means that it says nothing."""
    doc: str = ""


class AttributeClass(_Model):
    """Attribute values and shapes that one compiled kernel serves. The first class that fits a call serves it."""

    name: Name
    attributes: dict[str, AttributeValue] = {}
    """Values that are compiled in."""
    shapes: dict[str, str] = {}
    """Shape patterns that replace the operator's own, by tensor."""
    doc: str = ""


class Accuracy(_Model):
    """The accuracy contract: how far a result may be from the reference."""

    bound: Literal["E0", "E1", "E2", "E3", "E4", "E5", "E7"]
    """The class of error bound; docs/accuracy.md has the rule of each."""
    function: Literal["", Function] = ""
    """Of E2: the function, whose bound in ULP the class tables."""
    flushes_subnormals: bool = False
    """Whether float32 results and intermediate results below 2**-126 may lose digits or become 0. It adds 2**-126 to
    the bound."""
    signed_zero: bool = True
    """Of E0 and E1: whether the sign of a zero is part of the result."""


class Determinism(_Model):
    """How far results repeat."""

    grade: Literal["R0", "R1", "R2"] = "R1"
    """R0: always the same bits. R1: the same bits for one shape and configuration. R2: within the bound only."""


class Workload(_Model):
    """A concrete call that users make: benchmarks run it, and evaluation takes its shapes."""

    name: Annotated[str, StringConstraints(pattern=WORKLOAD_NAME)]
    shapes: dict[str, list[Annotated[int, Field(ge=0)]]]
    """Concrete extents, by input."""
    attributes: dict[str, AttributeValue] = {}
    reason: str
    """Where this shape comes from."""
    flops: str = ""
    """Floating-point operations of one call, as a product over axis names: `2*m*n*k`. Counted as in the references
    that the roofline model compares with: an addition, a multiplication, a comparison or a transcendental is one."""


class Language(_Model):
    """Kernels of this package that are written in another kernel language than semantics and schedule."""

    sources: Annotated[list[str], Field(min_length=1)]
    """Files of the package, in the order in which they are compiled."""
    classes: list[Name] = []
    """The attribute classes that they serve; none means all."""
    targets: list[str] = []
    """The targets that they serve; none means all."""


class Manifest(_Model):
    """An op package."""

    schema_version: Annotated[Literal[1], Field(alias="schema")]
    """Version of this format."""
    name: Name
    version: VersionText
    """SemVer. A published version never changes."""
    summary: Annotated[str, StringConstraints(min_length=1, max_length=120)]
    license: Annotated[str, StringConstraints(min_length=1)]
    """An SPDX expression."""
    maintainers: Annotated[list[str], Field(min_length=1)]
    operator: Operator
    types: dict[str, Annotated[list[TypeName], Field(min_length=1)]] = {}
    """Type variables, each with the element types that it stands for. The first one is what an absent input has."""
    inputs: Annotated[Table[Tensor], Field(min_length=1, max_length=6)]
    outputs: Annotated[Table[Tensor], Field(min_length=1, max_length=2)]
    axes: Table[Axis] = {}
    attributes: Table[Attribute] = {}
    classes: list[AttributeClass] = [AttributeClass(name="general")]
    accuracy: Accuracy
    determinism: Determinism = Determinism()
    workloads: list[Workload] = []
    languages: Table[Language] = {}

    @property
    def tensors(self) -> dict[str, Tensor]:
        """Inputs, then outputs."""
        return {**self.inputs, **self.outputs}

    @property
    def reference(self) -> str:
        return f"{self.name}@{self.version}"


NOT_COMPILED = ("summary", "license", "maintainers", "accuracy", "determinism", "workloads")
"""What a manifest says of its package and of the evidence for it; none of it reaches the bytes of a kernel."""


def json_schema() -> dict[str, Any]:
    """The JSON Schema of `op.toml`, for editors and for other implementations."""
    schema = Manifest.model_json_schema(by_alias=True)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "https://hfreg.dev/schemas/op-v1.json",
        **schema,
        "title": "op.toml",
    }
