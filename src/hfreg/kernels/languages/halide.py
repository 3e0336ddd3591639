"""Kernels written as semantics and a schedule, compiled by Halide.

Each compilation runs in a fresh process: names inside the object stay the same from build to build, and an abort of
the compiler is a build error instead of the end of the service.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from hfreg.errors import BuildError
from hfreg.kernels.languages.base import Compiled, Recipe
from hfreg.kernels.toolchain import Tool, compile_c, halide
from hfreg.processes import Exited, Killed, TimedOut, clean_environment, python_command, run
from hfreg.resources import root_folder

TIMEOUT_S = 120.0


class Halide:
    """The language `halide`."""

    name = "halide"

    def tools(self) -> Sequence[Tool]:
        return (halide(),)

    def compile(self, recipe: Recipe) -> Compiled:
        notes = self._run_worker(recipe)
        table = recipe.workspace / "arguments.c"
        table.write_text(_argument_table(notes.pop("scalars"), notes.pop("buffers")))
        include = ["-I", str(root_folder("kernels") / "runtime")]
        compile_c(table, recipe.workspace / "arguments.o", recipe.target, flags=include)
        objects = (recipe.workspace / "halide.o", recipe.workspace / "arguments.o")
        return Compiled(objects, runtime=("halide_body.c",), notes=notes)

    def _run_worker(self, recipe: Recipe) -> dict[str, Any]:
        request = {
            "key": recipe.key.as_json(),
            "package": str(recipe.package),
            "output": str(recipe.workspace / "halide.o"),
            "useClassSchedule": recipe.use_class_schedule,
        }
        ending = run(
            python_command("hfreg.kernels.languages.halide_worker"),
            stdin=json.dumps(request).encode(),
            timeout_s=TIMEOUT_S,
            cwd=recipe.workspace,
            env=clean_environment(PYTHONHASHSEED=str(recipe.hash_seed)),
        )
        where = recipe.key.slug
        match ending:
            case Exited(0, stdout, _):
                return dict(json.loads(stdout))
            case Exited(_, _, stderr):
                raise BuildError(stderr or "the compilation failed without a message", where=where)
            case Killed(_, stderr):
                raise BuildError(f"the compiler died of {ending}\n{stderr}", where=where)
            case TimedOut(seconds, stderr):
                raise BuildError(f"the compiler was stopped after {seconds:g} s\n{stderr}", where=where)


def _argument_table(scalars: list[dict[str, Any]], buffers: list[tuple[int, int]]) -> str:
    """What `halide_body.c` has to know of the compiled function."""
    rows = ", ".join(f"{{{scalar['attribute']}, {int(scalar['isReal'])}}}" for scalar in scalars) or "{0, 0}"
    types = ", ".join(f"{{{code}, {bits}, 1}}" for code, bits in buffers)
    return f"""#include "halide_body.h"
const hfreg_halide_type hfreg_halide_types[] = {{{types}}};
const hfreg_halide_scalar hfreg_halide_scalars[] = {{{rows}}};
const uint8_t hfreg_halide_scalar_count = {len(scalars)};
"""
