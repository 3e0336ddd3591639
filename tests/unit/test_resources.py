from __future__ import annotations

from pathlib import Path

import pytest

from hfreg import resources
from hfreg.errors import MachineError
from hfreg.resources import cache_home, config_home, data_home, root_folder

find = root_folder.__wrapped__  # without the cache


def test_the_root_folders_of_this_checkout_are_found() -> None:
    assert (root_folder("ops")).is_dir()
    assert (root_folder("kernels") / "targets").is_dir()
    assert root_folder("ops").name == "ops"


def test_an_installed_wheel_carries_the_folders_and_they_come_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "src" / "hfreg"
    monkeypatch.setattr(resources, "_PACKAGE", package)
    (tmp_path / "ops").mkdir()
    package.mkdir(parents=True)
    assert find("ops") == tmp_path / "ops"
    (package / "_root" / "ops").mkdir(parents=True)
    assert find("ops") == package / "_root" / "ops"


def test_a_missing_root_folder_is_a_fault_of_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "_PACKAGE", tmp_path / "src" / "hfreg")
    (tmp_path / "matrix").write_text("a file, not a folder")
    with pytest.raises(MachineError, match="the data folder matrix/ is missing"):
        find("matrix")


# XDG base directory specification 0.8: the variables and what they default to.
HOMES = {
    data_home: ("XDG_DATA_HOME", ".local/share/hfreg"),
    config_home: ("XDG_CONFIG_HOME", ".config/hfreg"),
    cache_home: ("XDG_CACHE_HOME", ".cache/hfreg"),
}


@pytest.mark.parametrize("home", HOMES, ids=lambda home: home.__name__)
@pytest.mark.parametrize("value", [None, "", "elsewhere"])
def test_a_home_follows_its_variable_or_is_in_the_users_home(
    home: object, value: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    variable, default = HOMES[home]  # type: ignore[index]
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("HFREG_CACHE", raising=False)
    monkeypatch.delenv(variable, raising=False)
    if value is not None:
        monkeypatch.setenv(variable, value and str(tmp_path / value))
    assert callable(home)
    assert home() == (tmp_path / "elsewhere" / "hfreg" if value else tmp_path / default)


def test_the_cache_can_be_named_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HFREG_CACHE", str(tmp_path / "mine"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "other"))
    assert cache_home() == tmp_path / "mine"


@pytest.mark.parametrize("home", HOMES, ids=lambda home: home.__name__)
def test_a_relative_folder_means_the_same_in_a_child_that_works_elsewhere(
    home: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HFREG_CACHE", raising=False)
    monkeypatch.setenv(HOMES[home][0], "here")  # type: ignore[index]
    assert callable(home)
    assert home() == tmp_path / "here" / "hfreg"


def test_a_relative_cache_means_the_same_in_a_child_that_works_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HFREG_CACHE", "mine")
    assert cache_home() == tmp_path / "mine"
