"""Plan: which kernels of which packages, for which targets."""

from __future__ import annotations

from collections.abc import Sequence

from hfreg.errors import UsageError
from hfreg.kernels.artifact import KernelKey, plan_kernels
from hfreg.kernels.targets import Target, buildable_targets, target
from hfreg.ops.package import OpPackage


def chosen_targets(names: Sequence[str]) -> list[Target]:
    """The targets of that name, or all that kernels can be built for.

    Raises:
        UsageError: a target is unknown, or nothing can be built for it yet.
    """
    if not names:
        return buildable_targets()
    chosen = [target(name) for name in dict.fromkeys(names)]
    for goal in chosen:
        if goal.build is None:
            raise UsageError(f"nothing can be built for {goal.name}: it is {goal.maturity}")
    return chosen


def chosen_languages(package: OpPackage, language: str | None) -> tuple[str, ...]:
    """The kernel languages to build: the one that is named, or all that the package has.

    Raises:
        UsageError: the package has no kernels in that language.
    """
    if language is None:
        return package.languages
    if language not in package.languages:
        raise UsageError(
            f"{package.name} has no kernels in the language {language!r}",
            hint=f"it has: {', '.join(package.languages)}",
        )
    return (language,)


def packages_in(packages: Sequence[OpPackage], language: str | None) -> list[OpPackage]:
    """The packages that have kernels in a language.

    Raises:
        UsageError: none has.
    """
    found = [package for package in packages if language in (None, *package.languages)]
    if packages and not found:
        known = sorted({name for package in packages for name in package.languages})
        raise UsageError(f"no kernels in the language {language!r}", hint=f"there are: {', '.join(known)}")
    return found


def plan(package: OpPackage, targets: Sequence[Target], languages: Sequence[str]) -> list[KernelKey]:
    """The kernels of a package, in the order of targets, languages, classes and types."""
    return [key for goal in targets for key in plan_kernels(package.manifest, tuple(languages), goal.name)]
