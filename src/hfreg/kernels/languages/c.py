"""Kernels written in C, against `hfreg/body.h`, compiled by zig."""

from __future__ import annotations

from collections.abc import Sequence

from hfreg.errors import BuildError
from hfreg.kernels.languages.base import Compiled, Recipe
from hfreg.kernels.toolchain import Tool, compile_c

_CONVERTED = ("float32", "float16", "bfloat16")
"""Types that `hfreg/elements.h` converts from and to float."""


def _macros(variable: str, type_name: str) -> list[str]:
    """What a C file knows of a type variable."""
    c_type = f"hfreg_{type_name}" if type_name in _CONVERTED else {"float64": "double", "bool": "_Bool"}.get(type_name)
    macros = [f"-DHFREG_{variable}={c_type or f'{type_name}_t'}", f"-DHFREG_{variable}_IS_{type_name}"]
    if type_name in _CONVERTED:
        macros += [
            f"-DHFREG_{variable}_LOAD=hfreg_load_{type_name}",
            f"-DHFREG_{variable}_STORE=hfreg_store_{type_name}",
        ]
    return macros


class C:
    """The language `c`."""

    name = "c"

    def tools(self) -> Sequence[Tool]:
        return ()

    def compile(self, recipe: Recipe) -> Compiled:
        sources = recipe.manifest.languages[self.name].sources
        flags = [flag for variable, name in recipe.key.types for flag in _macros(variable, name)]
        # the ABI gives a body more arguments than some need
        flags += [f"-DHFREG_CLASS_{recipe.key.attribute_class}", "-Wno-unused-parameter"]
        objects = []
        for source in sources:
            output = recipe.workspace / f"{source.replace('/', '.')}.o"
            try:
                compile_c(recipe.package / source, output, recipe.target, flags=flags, optimize="-O3")
            except BuildError as error:
                raise BuildError(error.message, where=recipe.key.slug, hint=f"fix {source}") from error
            objects.append(output)
        return Compiled(tuple(objects))
