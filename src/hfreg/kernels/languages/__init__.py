"""Kernel languages: what the body of a kernel is written in. One more language is one more module here."""

from hfreg.kernels.languages.base import Compiled, KernelLanguage, Recipe
from hfreg.kernels.languages.c import C
from hfreg.kernels.languages.halide import Halide

LANGUAGES: dict[str, KernelLanguage] = {language.name: language for language in (Halide(), C())}

__all__ = ["LANGUAGES", "Compiled", "KernelLanguage", "Recipe"]
