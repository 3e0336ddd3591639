"""Contractions: sums of products over the axes that two tensors share (Einstein summation)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import halide as hl

from hfreg.lang.elements import FLOAT32
from hfreg.lang.tensor import Expr, Extent, Tensor, var
from hfreg.lang.window import Window
from hfreg.lang.window_contraction import contract_windows

BLOCK = 64
"""Steps of the reduction that are summed before they are added to the rest."""
_SPEC = re.compile(r"(?P<left>[a-z]+),(?P<right>[a-z]*(?:\([a-z]+\))?)->(?P<out>[a-z]+)")


@dataclass(eq=False)
class Contraction(Tensor):
    """A contraction. `vector` is its last axis, `row` an axis that the operand with `vector` lacks.

    `block` sums some steps of the reduction at a time, and the blocks are added: the error of one long sum would grow
    with its length. With a packed operand the stage itself adds them; with few rows (`Lowering.steps`) nothing is
    packed, and `sums` adds them.
    """

    vector: str = ""
    row: str = ""
    reduced: tuple[str, ...] = ()
    panel: Any = None
    """The operand with the vector axis, its axes reordered."""
    block: Any = None
    inner: Any = None
    sums: Any = None
    blocks: Any = None


def contract(spec: str, a: Tensor, b: Tensor) -> Tensor:
    """Sum products, in float32.

    Args:
        spec: `mk,kn->mn`, a letter for each axis. Letters in parentheses are axes that the tensor has as one.
        a: the first tensor, or windows.
        b: the second tensor.

    Raises:
        ValueError: the specification does not follow this form.
    """
    match = _SPEC.fullmatch(spec)
    if match is None:
        raise ValueError(f"{spec!r} is no contraction, write it like mk,kn->mn")
    if isinstance(a, Window):
        return contract_windows(match["left"], match["right"], match["out"], a, b)
    return _Lowering(match["left"], match["right"], match["out"], a, b).run()


class _Lowering:
    """One contraction of plain tensors on the way to its stages."""

    def __init__(self, left: str, right: str, out: str, a: Tensor, b: Tensor) -> None:
        self.a, self.b, self.out = a, b, out
        self.extent: dict[str, Extent] = dict(zip(right, b.shape, strict=True)) | dict(zip(left, a.shape, strict=True))
        self.reduced = [axis for axis in left if axis not in out]
        self.vector = out[-1]
        is_right = self.vector in right
        self.paneled, self.other = (b, a) if is_right else (a, b)
        self.paneled_axes, self.other_axes = (right, left) if is_right else (left, right)
        self.row = [axis for axis in out if axis not in self.paneled_axes][-1]
        self.shape = [self.extent[axis] for axis in out]
        self.here = tuple(var(axis) for axis in reversed(out))

    def run(self) -> Contraction:
        """The finished stage."""
        few_rows = self.a.graph.lowering.steps
        return self.in_blocks(few_rows) if few_rows else self.with_panel()

    def read(self, tensor: Tensor, axes: Sequence[str], variable: Callable[[str], Expr]) -> Expr:
        """The value of an operand. Tiles reach beyond the edge, where the last row or column is read again."""

        def place(axis: str) -> Expr:
            if axis == self.vector:
                return hl.min(hl.likely(variable(axis)), self.extent[axis] - 1)
            # `likely` here too would split the loop of rows, and every vector of the last ones would become a gather
            return hl.min(variable(axis), self.extent[axis] - 1) if axis == self.row else variable(axis)

        return tensor.at([place(axis) for axis in axes])

    def with_panel(self) -> Contraction:
        panel = hl.Func("panel")
        inside = [axis for axis in reversed(self.paneled_axes) if axis in self.reduced]
        outside = [axis for axis in reversed(self.paneled_axes) if axis in self.out and axis != self.vector]
        layout = [self.vector, *inside, *outside]
        panel[tuple(var(axis) for axis in layout)] = self.read(self.paneled, self.paneled_axes, var)

        def paneled(variable: Callable[[str], Expr]) -> Expr:
            return hl.Expr(panel[tuple(variable(axis) for axis in layout)])

        block, inner, blocks = self.make_blocks(BLOCK, paneled)
        stage = self.define(lambda *_: hl.cast(FLOAT32, 0), panel=panel, block=block, inner=inner, blocks=blocks)
        self.add_blocks(stage.func, block, blocks)
        return stage

    def in_blocks(self, steps: int) -> Contraction:
        def paneled(variable: Callable[[str], Expr]) -> Expr:
            return self.paneled.at([variable(name) for name in self.paneled_axes])

        sums = hl.Func("sums")
        block, inner, blocks = self.make_blocks(steps, paneled)
        sums[self.here] = hl.cast(FLOAT32, 0)
        self.add_blocks(sums, block, blocks)
        return self.define(
            lambda *index: sums[tuple(reversed(index))], block=block, inner=inner, sums=sums, blocks=blocks
        )

    def make_blocks(self, steps: int, paneled: Callable[[Callable[[str], Expr]], Expr]) -> tuple[Any, Any, Any]:
        """Sums of some steps of the innermost reduced axis; their reduction domain, and the one over the blocks."""
        part, block, (*others, axis) = var("part"), hl.Func("block"), self.reduced
        size = self.extent[axis]
        inner = hl.RDom([hl.Range(0, steps)], "k")
        blocks = hl.RDom(
            [hl.Range(0, (size + steps - 1) / steps), *(hl.Range(0, self.extent[name]) for name in reversed(others))],
            "blocks",
        )
        inner.where(part * steps + inner[0] < size)
        k = hl.unsafe_promise_clamped(part * steps + inner[0], 0, size - 1)

        def variable(name: str) -> Expr:
            return k if name == axis else var(name)

        at = (*self.here, part, *(var(name) for name in reversed(others)))
        block[at] = hl.cast(FLOAT32, 0)
        block[at] = hl.Expr(block[at]) + self.read(self.other, self.other_axes, variable) * paneled(variable)
        return block, inner, blocks

    def add_blocks(self, sums: Any, block: Any, blocks: Any) -> None:
        steps = tuple(blocks[place] for place in range(len(self.reduced)))
        sums[self.here] = hl.Expr(sums[self.here]) + block[(*self.here, *steps)]

    def define(self, value: Callable[..., Expr], **fields: Any) -> Contraction:
        return Contraction.define(
            self.a.graph, "contract", list(self.out), self.shape, value, (self.a, self.b),
            vector=self.vector, row=self.row, reduced=tuple(self.reduced), **fields,
        )  # fmt: skip
