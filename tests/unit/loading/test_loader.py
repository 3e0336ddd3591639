"""Arguments of `load` that are wrong before any registry is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hfreg import load
from hfreg.errors import UsageError


@pytest.mark.parametrize(
    ("reference", "options", "where"),
    [
        (None, {}, "reference"),
        (5, {}, "reference"),
        (b"add", {}, "reference"),
        ("add", {"registry": 5}, "registry"),
        ("add", {"registry": "a" * 300}, "a" * 300),
        ("add", {"registry": "/dev/null"}, "/dev/null"),
        ("add", {"target": ["x86_64-v3"]}, "target"),
        ("add", {"language": 1}, "language"),
        *(("add", {"threads": threads}, "threads") for threads in ("2", 1.5, -1, 0, True, 1025, 2**40, 100_000)),
    ],
)
def test_an_argument_of_another_kind_is_wrong_use(reference: Any, options: dict[str, Any], where: str) -> None:
    with pytest.raises(UsageError) as caught:
        load(reference, **options)
    assert caught.value.where == where


@pytest.mark.parametrize("text", ["0", "-1", "two", "1.5", "1025", "9" * 20, " 2", "²"])
def test_the_variable_is_a_number_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("HFREG_NUM_THREADS", text)
    with pytest.raises(UsageError, match="expected a number from 1 to 1024") as caught:
        load("add", registry=tmp_path)
    assert caught.value.where == "HFREG_NUM_THREADS"


@pytest.mark.parametrize("text", ["", "1", "1024"])
def test_threads_that_are_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("HFREG_NUM_THREADS", text)
    with pytest.raises(UsageError, match="no operator 'add'"):
        load("add", registry=tmp_path)
    with pytest.raises(UsageError, match="no operator 'add'"):
        load("add", registry=tmp_path, threads=1024)
