"""`hfreg bench`: measure kernels."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import click

from hfreg.cli.options import (
    json_option,
    language_option,
    package_arguments,
    package_folders,
    print_json,
    print_table,
    target_option,
)


@click.command(
    "bench",
    help="Measure the workloads of op packages against onnxruntime, in turn, and against the machine's roofline.",
)
@package_arguments
@target_option
@language_option
@click.option("--threads", default="1,2", show_default=True, help="Numbers of threads, separated by commas.")
@click.option("--budget", default=0.4, show_default=True, help="Seconds for one measurement.")
@click.option("--type", "type_slug", default=None, help="Only kernels of these element types, such as float32.")
@json_option
def command(
    paths: tuple[Path, ...],
    targets: tuple[str, ...],
    language: str | None,
    threads: str,
    budget: float,
    type_slug: str | None,
    as_json: bool,
) -> None:
    """Measure, and print a table with the geometric means of the ratios."""
    from hfreg.ci.bench import Effort, run_benchmarks
    from hfreg.ci.plan import chosen_targets, packages_in
    from hfreg.errors import MachineError
    from hfreg.kernels.targets import host_targets
    from hfreg.ops.package import load_package
    from hfreg.progress import Progress

    packages = packages_in([load_package(folder) for folder in package_folders(paths)], language)
    goals = chosen_targets(targets) if targets else host_targets()
    for goal in goals:
        if reason := goal.why_not_here():
            raise MachineError(f"{goal.name} cannot be measured here: {reason}")
    effort = Effort(threads=_numbers(threads), budget_s=budget)
    steps = Progress("measuring", len(packages) * len(goals))
    records: list[Any] = []
    for package in packages:
        for goal in goals:
            found = run_benchmarks(package, goal.name, effort, language=language, type_slug=type_slug)
            steps.step(f"{package.name} {goal.name}")
            records += found
    if as_json:
        print_json([record.as_json() for record in records])
    else:
        _print(records)


def _numbers(text: str) -> tuple[int, ...]:
    try:
        numbers = tuple(map(int, text.split(",")))
    except ValueError:
        numbers = ()
    if not numbers or min(numbers) < 1:
        raise click.BadParameter(f"{text!r} is no list of numbers from 1, such as 1,2", param_hint="--threads")
    return numbers


def _print(records: list[Any]) -> None:
    rows = [
        [
            record.key.slug,
            record.workload,
            str(record.threads),
            f"{_us(record, 'median_ns')}",
            f"{_us(record, 'p10_ns')}",
            f"{_us(record, 'p90_ns')}",
            _figure(record, "arithmetic_intensity_flop_per_byte", ".2f"),
            _figure(record, "bandwidth_use", ".2f"),
            _figure(record, "roofline_fraction", ".2f"),
            _figure(record, "speedup", ".2f"),
            _figure(record, "toolchain_efficiency", ".2f"),
        ]
        for record in records
    ]
    header = ["kernel", "workload", "threads", "median µs", "p10", "p90", "flop/byte", "U", "roofline", "speedup", "η"]
    print_table(rows, header=header)
    for group in sorted({(r.key.target, r.threads) for r in records}):
        ratios = [r.figures["speedup"] for r in records if (r.key.target, r.threads) == group and r.figures["speedup"]]
        if ratios:
            mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
            click.echo(f"{group[0]}, threads {group[1]}: geometric mean {mean:.2f} over {len(ratios)} measurements")


def _us(record: Any, name: str) -> str:
    return f"{record.figures[name] / 1000:.1f}"


def _figure(record: Any, name: str, form: str) -> str:
    value = record.figures.get(name)
    return "" if value is None else format(value, form)
