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
