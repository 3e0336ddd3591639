from __future__ import annotations

from pathlib import Path

import pytest

from hfreg.errors import UsageError
from hfreg.ops.check import check_package
from hfreg.ops.golden import read_golden
from hfreg.ops.package import load_package
from hfreg.ops.scaffold import new_package


def test_a_new_package_is_valid_and_has_a_golden_case_for_each_type(tmp_path: Path) -> None:
    made = new_package("my_square", tmp_path)
    assert made.manifest.operator.name == "MySquare"
    assert load_package(tmp_path / "my_square").digest == made.digest
    assert check_package(made) == 3
    for case in read_golden(made.files, made.manifest):
        (x,) = case.inputs
        assert x is not None
        assert (x * x == case.outputs[0]).all()


@pytest.mark.parametrize("user", ['a "quoted" name', "DOMAIN\\user", "Zoë"])
def test_any_user_can_be_its_maintainer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, user: str) -> None:
    monkeypatch.setenv("LOGNAME", user)
    assert new_package("square", tmp_path).manifest.maintainers == [user]


@pytest.mark.parametrize("name", ["", "Square", "a-b", "a__b", "_a", "../a", "class", "lambda"])
def test_a_name_that_no_function_can_have_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="is no name"):
        new_package(name, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_exists_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "square").mkdir()
    with pytest.raises(UsageError, match="exists already"):
        new_package("square", tmp_path)
    assert list((tmp_path / "square").iterdir()) == []
