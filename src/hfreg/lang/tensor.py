"""Tensors in NumPy axis order, each one a Halide stage.

A kernel is a `Graph` of stages. Point-wise stages (`Map`) cost nothing by themselves: Halide inlines them unless a
schedule says otherwise. float16 and bfloat16 inputs are computed in float32 and rounded once, at the output.

Halide's dimensions run from the innermost outward, NumPy's from the outermost inward; only this module knows that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import halide as hl

from hfreg.dtypes import DType
from hfreg.lang.elements import FLOAT32, Element, element

Expr = Any
"""A `halide.Expr`; the bindings have no types."""
Extent = Any
"""An extent: a Python integer where it is known when the kernel is compiled, else an `Expr`."""
Scalar = int | float | Any


def is_unit(extent: Extent) -> bool:
    """Whether an axis broadcasts by construction: its extent is the number 1."""
    return isinstance(extent, int) and extent == 1


def var(name: str) -> Any:
    """The Halide variable of an axis."""
    return hl.Var(name)


@dataclass(frozen=True, slots=True)
class Lowering:
    """What a schedule asks of the graph that it gets: numbers that shape stages, and change no meaning."""

    vector: int = 16
    """float32 lanes of a vector register."""
    lanes: int = 32
    """Partial results of a reduction along the last axis; a power of two."""
    has_float16: bool = True
    """Whether the target converts float16 by itself."""
    steps: int = 0
    """Of a contraction with few rows: steps of the reduction that one block takes; 0 packs an operand instead."""
    touched: str = ""
    """A stage whose loop reads the output's memory too, so that it is in the cache when the output is written."""


class Graph:
    """The stages of one kernel, in the order of their definition. `graph["exp"]` is the stage of that name."""

    def __init__(self, lowering: Lowering, result: DType) -> None:
        """Start an empty graph.

        Args:
            lowering: what the schedule asks of it.
            result: the element type of the output.
        """
        self.lowering = lowering
        self.result = element(result, has_float16=lowering.has_float16)
        self.stages: dict[str, Tensor] = {}
        self.inputs: list[Any] = []
        """Halide's image parameters, in the order of the operator's inputs."""
        self.scalars: list[Any] = []
        self.output_memory: Any = None
        """The output's buffer once more, as an input, where `touched` asks for it."""
        self.out: Tensor = None  # type: ignore[assignment]

    @property
    def arguments(self) -> list[Any]:
        """The arguments of the compiled function: inputs, scalars, the output's memory if it is touched."""
        return [*self.inputs, *self.scalars, *([self.output_memory] if self.output_memory else [])]

    def __getitem__(self, name: str) -> Tensor:
        return self.stages[name]

    def of_kind(self, kind: type[Tensor]) -> list[Any]:
        """The stages of one kind."""
        return [stage for stage in self.stages.values() if type(stage) is kind]

    def users(self, stage: Tensor) -> list[Tensor]:
        """The stages that read a stage."""
        return [user for user in self.stages.values() if stage in user.operands]

    def unique_name(self, name: str) -> str:
        """A name for a new stage: `mul`, then `mul.2`, ..."""
        copies = sum(existing.split(".")[0] == name for existing in self.stages)
        return f"{name}.{copies + 1}" if copies else name

    def input(self, name: str, dtype: DType, axes: Sequence[str], *, any_stride: bool = False) -> Input:
        """A tensor argument.

        Args:
            name: the argument's name.
            dtype: its element type.
            axes: the names of its axes, outermost first.
            any_stride: whether the last axis may have another stride than 1.
        """
        kind = element(dtype, has_float16=self.lowering.has_float16)
        buffer = hl.ImageParam(kind.memory, len(axes), name)
        if any_stride and axes:
            buffer.dim(0).set_stride(hl.Expr())
        self.inputs.append(buffer)
        extents = {axis: buffer.dim(place).extent() for place, axis in enumerate(reversed(axes))}

        def load(*index: Expr) -> Expr:
            return kind.load(buffer[tuple(reversed(index))] if index else buffer[()])

        return Input.define(self, name, axes, [extents[axis] for axis in axes], load, buffer=buffer, element=kind)

    def scalar(self, name: str, dtype: Any) -> Expr:
        """A run-time attribute."""
        self.scalars.append(hl.Param(dtype, name))
        return hl.Expr(self.scalars[-1])

    def output(self, result: Tensor) -> None:
        """Make a tensor the result of the kernel, rounded to its element type."""
        store = self.result.store
        self.out = Map.define(self, "out", result.axes, result.shape, lambda *i: store(result.load(i)), (result,))


@dataclass(eq=False)
class Tensor:
    """A stage over named axes.

    An axis whose extent is the number 1 broadcasts, and is absent from the Halide function.
    """

    graph: Graph
    name: str
    axes: tuple[str, ...]
    shape: tuple[Extent, ...]
    func: Any
    operands: tuple[Tensor, ...] = ()
    is_costly: bool = False
    """Whether storing it may be better than computing it twice."""
    is_difference: bool = False
    """Whether it is the difference to something that is not smaller: no element is above 0 (it may be NaN)."""

    @classmethod
    def define(
        cls,
        graph: Graph,
        name: str,
        axes: Sequence[str],
        shape: Sequence[Extent],
        value: Callable[..., Expr],
        operands: Sequence[Tensor] = (),
        **fields: Any,
    ) -> Self:
        """Define a stage point by point; `value(*index)` is the expression at an index over the kept axes."""
        name = graph.unique_name(name)
        func = hl.Func(name.replace(".", "_"))
        stage = cls(graph, name, tuple(axes), tuple(shape), func, tuple(operands), **fields)
        index = stage.variables()
        stage.func[tuple(reversed(index))] = value(*index)
        graph.stages[name] = stage
        return stage

    @property
    def rank(self) -> int:
        """The number of axes, those that broadcast included."""
        return len(self.axes)

    @property
    def dtype(self) -> Any:
        """The Halide type that it is computed in."""
        return self.func.type()

    def kept(self) -> list[str]:
        """The axes that do not broadcast."""
        return [axis for axis, extent in zip(self.axes, self.shape, strict=True) if not is_unit(extent)]

    def variables(self) -> list[Any]:
        """The Halide variables of the kept axes."""
        return [var(axis) for axis in self.kept()]

    def extent(self, axis: int) -> Extent:
        """The extent of an axis, counted as in NumPy."""
        return self.shape[axis % self.rank]

    def load(self, index: Sequence[Expr]) -> Expr:
        """The value at an index over the kept axes."""
        return hl.Expr(self.func[tuple(reversed(list(index)))])

    def at(self, index: Sequence[Expr]) -> Expr:
        """The value at a full index, which may have more leading axes than this tensor."""
        own = list(index)[len(index) - self.rank :]
        return self.load([i for i, extent in zip(own, self.shape, strict=True) if not is_unit(extent)])

    def astype(self, dtype: Any) -> Tensor:
        """The same values in another Halide type."""
        return elementwise("cast", lambda value: hl.cast(dtype, value), self)

    def __add__(self, other: Operand) -> Tensor:
        return elementwise("add", lambda a, b: strict(a + b), self, other)

    def __radd__(self, other: Operand) -> Tensor:
        return elementwise("add", lambda a, b: strict(b + a), self, other)

    def __sub__(self, other: Operand) -> Tensor:
        result = elementwise("sub", lambda a, b: strict(a - b), self, other)
        result.is_difference = isinstance(other, Tensor) and other.bounds_from_above(self)
        return result

    def __rsub__(self, other: Operand) -> Tensor:
        return elementwise("sub", lambda a, b: strict(b - a), self, other)

    def __mul__(self, other: Operand) -> Tensor:
        return elementwise("mul", lambda a, b: strict(a * b), self, other)

    def __rmul__(self, other: Operand) -> Tensor:
        return elementwise("mul", lambda a, b: strict(b * a), self, other)

    def __truediv__(self, other: Operand) -> Tensor:
        return elementwise("div", lambda a, b: strict(a / b), self, other, is_costly=True)

    def __rtruediv__(self, other: Operand) -> Tensor:
        return elementwise("div", lambda a, b: strict(b / a), self, other, is_costly=True)

    def __lt__(self, other: Operand) -> Tensor:
        return elementwise("less", lambda a, b: hl.strict_float(a < b) if a.type().is_float() else a < b, self, other)

    def __gt__(self, other: Operand) -> Tensor:
        return elementwise(
            "greater", lambda a, b: hl.strict_float(a > b) if a.type().is_float() else a > b, self, other
        )

    def __neg__(self) -> Tensor:
        return elementwise("neg", lambda a: -a, self)

    def bounds_from_above(self, other: Tensor) -> bool:
        """Whether no element of `other` is above the element of this tensor that it broadcasts to."""
        return False


Operand = Tensor | Scalar


def strict(value: Expr) -> Expr:
    """An expression as it stands: each operation rounded once, in the order written.

    Without it LLVM regroups sums and products, drops cases of NaN and infinity, and estimates quotients. It holds as
    far as the expression reaches; sums of reductions and contractions stay free, that is what makes them vectors.
    """
    return hl.strict_float(value) if value.type().is_float() else value


class Map(Tensor):
    """A point-wise stage."""


@dataclass(eq=False)
class Input(Tensor):
    """An argument of the kernel."""

    buffer: Any = None
    """The Halide image parameter."""
    element: Element = None  # type: ignore[assignment]
    """How its elements are stored."""


def elementwise(name: str, function: Callable[..., Expr], *operands: Operand, is_costly: bool = False) -> Tensor:
    """Apply a function point by point, with NumPy's broadcasting.

    Args:
        name: what to call the stage.
        function: takes and gives Halide expressions.
        operands: tensors, numbers, and run-time attributes; at least one tensor, whose type the others take.
        is_costly: whether the function costs more than an arithmetic instruction.
    """
    tensors = [operand for operand in operands if isinstance(operand, Tensor)]
    rank = max(tensor.rank for tensor in tensors)
    axes: list[str] = []
    shape: list[Extent] = []
    for position in range(-rank, 0):
        here = [(t.axes[position], t.shape[position]) for t in tensors if t.rank >= -position]
        axis, extent = next((entry for entry in here if not is_unit(entry[1])), here[0])
        axes.append(axis)
        shape.append(extent)
    index = [var(axis) for axis in axes]
    dtype = tensors[0].dtype

    def value(*_: Expr) -> Expr:
        return function(*(o.at(index) if isinstance(o, Tensor) else constant(dtype, o) for o in operands))

    is_costly = is_costly or any(isinstance(tensor, Map) and tensor.is_costly for tensor in tensors)
    graph = tensors[0].graph
    value = _touching(graph, shape, value) if name == graph.lowering.touched else value
    return Map.define(graph, name, axes, shape, value, tensors, is_costly=is_costly)


def _touching(graph: Graph, shape: Sequence[Extent], value: Callable[..., Expr]) -> Callable[..., Expr]:
    """The same value, in a loop that loads the output's memory under a condition that never holds.

    Loads may be made early, so the cache lines are there when the last pass stores into them.
    """
    rank = sum(not is_unit(extent) for extent in shape)
    graph.output_memory = hl.ImageParam(graph.result.memory, rank, "output_memory")
    never = graph.output_memory.dim(rank - 1).stride() == -(2**31)

    def touched(*index: Expr) -> Expr:
        stored = graph.result.load(graph.output_memory[tuple(reversed(index))])
        return hl.select(never, stored, value(*index))

    return touched


def constant(dtype: Any, value: Scalar) -> Expr:
    """A number, or a run-time attribute, in a Halide type."""
    if isinstance(value, (int, float)) and dtype == FLOAT32:
        return hl.f32(float(value))
    return hl.cast(dtype, value)


def squeeze(x: Tensor, positions: Sequence[int]) -> Tensor:
    """Drop axes whose extent is the number 1."""
    keep = [i for i in range(x.rank) if i not in positions]
    return Map.define(
        x.graph, "squeeze", [x.axes[i] for i in keep], [x.shape[i] for i in keep], lambda *i: x.load(i), (x,)
    )


def along(x: Tensor, axes: int | Sequence[int], like: Tensor) -> Tensor:
    """View `x` as lying along some axes of `like`, in order; it broadcasts along the others."""
    places = [axes] if isinstance(axes, int) else list(axes)
    shape = [x.shape[places.index(i)] if i in places else 1 for i in range(like.rank)]
    return Map.define(x.graph, "along", like.axes, shape, lambda *i: x.load(i), (x,))


def transpose(x: Tensor, perm: Sequence[int]) -> Tensor:
    """Reorder axes: axis i of the result is axis perm[i] of `x`."""

    def value(*index: Expr) -> Expr:
        return x.load([index[list(perm).index(i)] for i in range(x.rank)])

    return Map.define(x.graph, "transpose", [x.axes[i] for i in perm], [x.shape[i] for i in perm], value, (x,))
