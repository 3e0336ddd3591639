"""Kernels written as semantics and a schedule, compiled by Halide.

Each compilation runs in a process of its own, forked from one that has Halide loaded and has compiled nothing: names
inside the object stay the same from build to build, and an abort of the compiler is a build error instead of the end
of the service.
"""

from __future__ import annotations

import atexit
import json
import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hfreg.errors import BuildError, MachineError, RunError
from hfreg.kernels.conditions import check_condition
from hfreg.kernels.languages.base import Compiled, Recipe
from hfreg.kernels.toolchain import Tool, compile_c, halide
from hfreg.processes import Exited, Killed, TimedOut, Worker, WorkerPool, clean_environment, python_command
from hfreg.resources import root_folder
from hfreg.wire import Message

TIMEOUT_S = 120.0
_OBJECT = "halide_{}.o"


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class _Variant(_Model):
    name: str
    condition: str
    touches_output: bool


class _Scalar(_Model):
    attribute: int
    is_real: bool


class _Answer(_Model):
    """What the worker says of the functions that it compiled. Code of the package ran there, so it is only a claim."""

    variants: list[_Variant] = Field(min_length=1)
    axes: dict[Annotated[str, Field(pattern="^[a-z][a-z0-9_]*$")], tuple[int, int]]
    scalars: list[_Scalar]
    buffers: list[tuple[int, int]]
    schedule: str
    compile_seconds: float


class Halide:
    """The language `halide`."""

    name = "halide"

    def tools(self) -> Sequence[Tool]:
        return (halide(),)

    def compile(self, recipe: Recipe) -> Compiled:
        answer = self._run_worker(recipe)
        table = recipe.workspace / "arguments.c"
        table.write_text(_argument_table(answer))
        include = ["-I", str(root_folder("kernels") / "runtime")]
        compile_c(table, recipe.workspace / "arguments.o", recipe.target, flags=include)
        objects = [recipe.workspace / _OBJECT.format(number) for number in range(len(answer.variants))]
        notes: dict[str, Any] = {"schedule": answer.schedule, "compileSeconds": answer.compile_seconds}
        if len(answer.variants) > 1:
            notes["variants"] = {variant.name: variant.condition for variant in answer.variants}
        return Compiled((*objects, recipe.workspace / "arguments.o"), runtime=("halide_body.c",), notes=notes)

    def _run_worker(self, recipe: Recipe) -> _Answer:
        request = {
            "key": recipe.key.as_json(),
            "package": str(recipe.package),
            "output": str(recipe.workspace / _OBJECT),
            "useClassSchedule": recipe.use_class_schedule,
        }
        where = recipe.key.slug
        try:
            answer = _workers(recipe.hash_seed).ask(Message(request), timeout_s=TIMEOUT_S)
        except RunError as garbled:
            raise BuildError(f"the compiler's answer is none: {garbled.message}", where=where) from garbled
        match answer:
            case Message({"error": str(error)}):
                raise BuildError(error, where=where)
            case Message(body):
                return _checked(body, where)
            case Exited(os.EX_OSERR, _, stderr):
                raise MachineError(stderr, where=where)
            case Exited(status, _, stderr):
                raise BuildError(f"the compiler ended with status {status}\n{stderr}", where=where)
            case Killed(_, stderr):
                raise BuildError(f"the compiler died of {answer}\n{stderr}", where=where)
            case TimedOut(seconds, stderr):
                raise BuildError(f"the compiler was stopped after {seconds:g} s\n{stderr}", where=where)


@cache
def _workers(hash_seed: int) -> WorkerPool:
    """The processes that compile with one hash seed."""
    command = python_command("hfreg.kernels.languages.halide_worker")
    environment = clean_environment(PYTHONHASHSEED=str(hash_seed))
    pool = WorkerPool(lambda: Worker(command, env=environment, cwd=Path("/")))
    atexit.register(pool.close)
    return pool


def _checked(body: dict[str, Any], where: str) -> _Answer:
    try:
        answer = _Answer.model_validate_json(json.dumps(body))
    except ValidationError as error:
        raise BuildError(f"the compiler's answer is none: {error}", where=where) from error
    for variant in answer.variants:
        check_condition(variant.condition, answer.axes)
    return answer


def _argument_table(answer: _Answer) -> str:
    """What `halide_body.c` has to know of the compiled functions."""
    variants, scalars = answer.variants, answer.scalars
    functions = [f"hfreg_halide_{number}_argv" for number in range(len(variants))]
    rows = ", ".join(f"{{{scalar.attribute}, {int(scalar.is_real)}}}" for scalar in scalars) or "{0, 0}"
    types = ", ".join(f"{{{code}, {bits}, 1}}" for code, bits in answer.buffers)
    declarations = "\n".join(f"int {function}(void **arguments);" for function in functions)
    rows_of = zip(functions, variants, strict=True)
    table = ", ".join(f"{{{function}, {int(variant.touches_output)}}}" for function, variant in rows_of)
    axes = "\n".join(
        f"    int64_t {axis} = views[{tensor}].extent[{place}];\n    (void){axis};"
        for axis, (tensor, place) in answer.axes.items()
    )
    choices = "\n".join(
        f"    if ({variant.condition}) return {number};" for number, variant in enumerate(variants[:-1])
    )
    return f"""#include "halide_body.h"
{declarations}
const hfreg_halide_type hfreg_halide_types[] = {{{types}}};
const hfreg_halide_scalar hfreg_halide_scalars[] = {{{rows}}};
const uint8_t hfreg_halide_scalar_count = {len(scalars)};
const hfreg_halide_variant hfreg_halide_variants[] = {{{table}}};

int hfreg_halide_choose(const hfreg_view *views) {{
    (void)views;
{axes}
{choices}
    return {len(variants) - 1};
}}
"""
