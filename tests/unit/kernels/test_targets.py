"""Target descriptions, and what runs on this machine."""

from pathlib import Path

import pytest

from hfreg.errors import MachineError, UsageError
from hfreg.kernels import targets as module
from hfreg.kernels.targets import buildable_targets, host_targets, target, targets

HASWELL = frozenset(["avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe", "sse4_1", "sse4_2"])
"""Flags of /proc/cpuinfo that level 3 of the x86-64 psABI needs, as far as targets name them."""


def test_kernels_are_built_for_two_levels_of_x86_64_and_for_webassembly() -> None:
    assert [goal.name for goal in buildable_targets()] == ["x86_64-v4", "x86_64-v3", "wasm32-simd"]


def test_a_planned_target_runs_nowhere_and_says_so() -> None:
    planned = [goal for goal in targets().values() if goal.maturity == "planned"]
    assert planned
    for goal in planned:
        assert goal.build is None
        assert goal.why_not_here() == f"{goal.name} is planned"


def test_a_processor_without_avx_512_runs_level_3_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "cpu_flags", lambda: HASWELL)
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    assert [goal.name for goal in host_targets()] == ["x86_64-v3"]
    assert target("x86_64-v4").why_not_here().startswith("this processor lacks avx512f, avx512bw")


def test_another_architecture_runs_neither_level_but_webassembly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    assert host_targets() == []
    assert target("x86_64-v3").why_not_here() == "this machine is aarch64, not x86_64"
    assert target("wasm32-simd").why_not_here() == ""


def test_an_unknown_target_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match="unknown target 'z80'") as caught:
        target("z80")
    assert "x86_64-v3" in caught.value.hint


@pytest.mark.parametrize("text", ["name = ", "name = 'x'", "name='x'\nsummary=''\nmaturity='perfect'", "color = 1"])
def test_a_broken_description_is_named(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "targets"
    folder.mkdir()
    (folder / "broken.toml").write_text(text)
    monkeypatch.setattr(module, "root_folder", lambda _: tmp_path)
    targets.cache_clear()
    try:
        with pytest.raises(MachineError, match="not a target description") as caught:
            targets()
    finally:
        targets.cache_clear()
    assert caught.value.where == str(folder / "broken.toml")
