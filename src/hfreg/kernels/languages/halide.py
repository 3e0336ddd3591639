"""Kernels written as semantics and a schedule, compiled by Halide.

Each compilation runs in a process of its own, forked from one that has Halide loaded and has compiled nothing: names
inside the object stay the same from build to build, and an abort of the compiler is a build error instead of the end
of the service.
"""

from __future__ import annotations

import atexit
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from hfreg.errors import BuildError
from hfreg.kernels.languages.base import Compiled, Recipe
from hfreg.kernels.toolchain import Tool, compile_c, halide
from hfreg.processes import Exited, Killed, TimedOut, Worker, WorkerPool, clean_environment, python_command
from hfreg.resources import root_folder
from hfreg.wire import Message

TIMEOUT_S = 120.0
_OBJECT = "halide_{}.o"


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
        variants = answer["variants"]
        objects = [recipe.workspace / _OBJECT.format(number) for number in range(len(variants))]
        notes = {name: answer[name] for name in ("schedule", "compileSeconds")}
        if len(variants) > 1:
            notes["variants"] = {variant["name"]: variant["condition"] for variant in variants}
        return Compiled((*objects, recipe.workspace / "arguments.o"), runtime=("halide_body.c",), notes=notes)

    def _run_worker(self, recipe: Recipe) -> dict[str, Any]:
        request = {
            "key": recipe.key.as_json(),
            "package": str(recipe.package),
            "output": str(recipe.workspace / _OBJECT),
            "useClassSchedule": recipe.use_class_schedule,
        }
        answer = _workers(recipe.hash_seed).ask(Message(request), timeout_s=TIMEOUT_S)
        where = recipe.key.slug
        match answer:
            case Message({"error": str(error)}):
                raise BuildError(error, where=where)
            case Message(body):
                return body
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


def _argument_table(answer: dict[str, Any]) -> str:
    """What `halide_body.c` has to know of the compiled functions."""
    variants, scalars = answer["variants"], answer["scalars"]
    functions = [f"hfreg_halide_{number}_argv" for number in range(len(variants))]
    rows = ", ".join(f"{{{scalar['attribute']}, {int(scalar['isReal'])}}}" for scalar in scalars) or "{0, 0}"
    types = ", ".join(f"{{{code}, {bits}, 1}}" for code, bits in answer["buffers"])
    declarations = "\n".join(f"int {function}(void **arguments);" for function in functions)
    rows_of = zip(functions, variants, strict=True)
    table = ", ".join(f"{{{function}, {int(variant['touchesOutput'])}}}" for function, variant in rows_of)
    axes = "\n".join(
        f"    int64_t {axis} = views[{tensor}].extent[{place}];\n    (void){axis};"
        for axis, (tensor, place) in answer["axes"].items()
    )
    choices = "\n".join(
        f"    if ({variant['condition']}) return {number};" for number, variant in enumerate(variants[:-1])
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
