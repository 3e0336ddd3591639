"""Kernels written in C, against `hfreg/body.h`, compiled by zig."""

from __future__ import annotations

from collections.abc import Sequence

from hfreg.errors import BuildError
from hfreg.kernels.languages.base import Compiled, Recipe
from hfreg.kernels.toolchain import Tool, compile_c

_C_TYPES = {
    "float32": "float",
    "float16": "_Float16",
    "bfloat16": "__bf16",
    "float64": "double",
    "bool": "_Bool",
    **{f"{sign}int{bits}": f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}


class C:
    """The language `c`."""

    name = "c"

    def tools(self) -> Sequence[Tool]:
        return ()

    def compile(self, recipe: Recipe) -> Compiled:
        sources = recipe.manifest.languages[self.name].sources
        flags = [f"-DHFREG_{variable}={_C_TYPES[name]}" for variable, name in recipe.key.types]
        flags += [f"-DHFREG_{variable}_IS_{name}" for variable, name in recipe.key.types]
        flags.append(f"-DHFREG_CLASS_{recipe.key.attribute_class}")
        objects = []
        for source in sources:
            output = recipe.workspace / f"{source.replace('/', '.')}.o"
            try:
                compile_c(recipe.package / source, output, recipe.target, flags=flags, optimize="-O3")
            except BuildError as error:
                raise BuildError(error.message, where=recipe.key.slug, hint=f"fix {source}") from error
            objects.append(output)
        return Compiled(tuple(objects))
