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

TIMEOUT_S = 120.0


class Halide:
    """The language `halide`."""

    name = "halide"

    def tools(self) -> Sequence[Tool]:
        return (halide(),)

    def compile(self, recipe: Recipe) -> Compiled:
        notes = self._run_worker(recipe)
        table = recipe.workspace / "scalars.c"
        table.write_text(_scalar_table(notes.pop("scalars")))
        compile_c(table, recipe.workspace / "scalars.o", recipe.target)
        objects = (recipe.workspace / "halide.o", recipe.workspace / "scalars.o")
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


def _scalar_table(scalars: list[dict[str, Any]]) -> str:
    rows = ", ".join(f"{{{scalar['attribute']}, {int(scalar['isReal'])}}}" for scalar in scalars) or "{0, 0}"
    return f"""#include <stdint.h>
typedef struct {{ uint8_t attribute, is_real; }} hfreg_halide_scalar;
const hfreg_halide_scalar hfreg_halide_scalars[] = {{{rows}}};
const uint8_t hfreg_halide_scalar_count = {len(scalars)};
"""
