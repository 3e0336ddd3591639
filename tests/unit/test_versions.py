from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hfreg.errors import UsageError
from hfreg.versions import Reference, Version

GRID = [Version(f"{a}.{b}.{c}") for a, b, c in itertools.product(range(4), range(5), range(5))]

# First version inside, first version above. The carets and tildes are the examples of node-semver's README.
RANGES = {
    "^1.2.3": ((1, 2, 3), (2, 0, 0)),
    "^0.2.3": ((0, 2, 3), (0, 3, 0)),
    "^0.0.3": ((0, 0, 3), (0, 0, 4)),
    "^1.2": ((1, 2, 0), (2, 0, 0)),
    "^0.0": ((0, 0, 0), (0, 1, 0)),
    "^0.1": ((0, 1, 0), (0, 2, 0)),
    "^1": ((1, 0, 0), (2, 0, 0)),
    "^0": ((0, 0, 0), (1, 0, 0)),
    "^0.0.0": ((0, 0, 0), (0, 0, 1)),
    "^1.0.0": ((1, 0, 0), (2, 0, 0)),
    "~1.2.3": ((1, 2, 3), (1, 3, 0)),
    "~1.2": ((1, 2, 0), (1, 3, 0)),
    "~1": ((1, 0, 0), (2, 0, 0)),
    "~0.2.3": ((0, 2, 3), (0, 3, 0)),
    "~0.2": ((0, 2, 0), (0, 3, 0)),
    "~0": ((0, 0, 0), (1, 0, 0)),
    "1.2": ((1, 2, 0), (1, 3, 0)),
    "1": ((1, 0, 0), (2, 0, 0)),
    "0": ((0, 0, 0), (1, 0, 0)),
    "0.0": ((0, 0, 0), (0, 1, 0)),
    "1.2.3": ((1, 2, 3), (1, 2, 4)),
    "": ((0, 0, 0), (9, 0, 0)),
}


@pytest.mark.parametrize("text", RANGES)
def test_a_range_admits_exactly_the_versions_between_its_ends(text: str) -> None:
    low, high = RANGES[text]
    reference = Reference("relu", text)
    admitted = [version.text for version in GRID if reference.admits(version)]
    assert admitted == [version.text for version in GRID if low <= version.numbers < high]


@given(st.lists(st.integers(0, 4), min_size=1, max_size=3))
def test_a_caret_keeps_the_left_most_number_that_is_not_zero(given_numbers: list[int]) -> None:
    reference = Reference("relu", "^" + ".".join(map(str, given_numbers)))
    kept = next((i for i, n in enumerate(given_numbers) if n), len(given_numbers) - 1)
    for version in GRID:
        same = list(version.numbers[: kept + 1]) == given_numbers[: kept + 1]
        not_below = list(version.numbers[: len(given_numbers)]) >= given_numbers
        assert reference.admits(version) == (same and not_below)


def test_versions_are_ordered_as_in_the_semver_specification() -> None:
    # SemVer 2.0.0, section 11.
    chain = [
        "1.0.0-alpha",
        "1.0.0-alpha.1",
        "1.0.0-alpha.beta",
        "1.0.0-beta",
        "1.0.0-beta.2",
        "1.0.0-beta.11",
        "1.0.0-rc.1",
        "1.0.0",
        "1.0.9",
        "1.0.10",
        "1.2.0",
        "1.10.0",
        "2.0.0",
    ]
    assert [version.text for version in sorted(map(Version, reversed(chain)))] == chain
    for (i, a), (j, b) in itertools.product(enumerate(map(Version, chain)), repeat=2):
        assert (a < b, a <= b, a == b, a >= b, a > b) == (i < j, i <= j, i == j, i >= j, i > j)


versions = st.builds(
    "{}.{}.{}{}{}".format,
    st.integers(0, 2),
    st.integers(0, 2),
    st.integers(0, 2),
    st.sampled_from(["", "-1", "-a", "-a.1", "-rc.1"]),
    st.sampled_from(["", "+b", "+b.2"]),
).map(Version)


@given(versions, versions, versions)
def test_the_order_is_total_and_build_metadata_breaks_ties(a: Version, b: Version, c: Version) -> None:
    assert [a < b, a == b, a > b].count(True) == 1
    assert not (a < b < c) or a < c
    if a.text.partition("+")[0] == b.text.partition("+")[0]:  # the same precedence
        assert (a < b) == (a.text < b.text)


def test_any_release_ranks_above_any_pre_release() -> None:
    ordered = ["1.0.0-rc.1", "2.0.0-rc.1", "1.0.0", "1.10.0"]
    assert [str(version) for version in sorted(map(Version, reversed(ordered)), key=lambda v: v.rank)] == ordered


@given(versions)
def test_numbers_and_pre_releases_are_read_off_the_text(version: Version) -> None:
    core, dash, _ = version.text.partition("+")[0].partition("-")
    assert ".".join(map(str, version.numbers)) == core
    assert version.is_prerelease == bool(dash)
    assert str(version) == version.text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1",
        "1.2",
        "1.2.3.4",
        "01.2.3",
        "1.02.3",
        "1.2.03",
        "1.2.3-",
        "1.2.3-01",
        "1.2.3+",
        "v1.2.3",
        " 1.2.3",
        "1.2.3 ",
        "1.2.3\n",
        "1.2.x",
        "-1.2.3",
        "1.2.3-ä",
        "1.0.\u0663",
        "1.2.3-a..b",
        "9" * 5000 + ".0.0",
    ],
)
def test_what_semver_does_not_have_is_no_version(text: str) -> None:
    with pytest.raises(UsageError, match="is not a version"):
        Version(text)


@given(versions, st.lists(versions, max_size=6))
def test_a_pre_release_is_admitted_only_where_it_is_named(version: Version, others: list[Version]) -> None:
    assert Reference("relu", version.text).admits(version)
    for other in others:
        assert Reference("relu", version.text).admits(other) == (other.text == version.text)
    if version.is_prerelease:
        ranges = ["", "1", "^0", "^1", "^2", "~0", "~1", "~2", "0", "2"]
        assert not any(Reference("relu", text).admits(version) for text in ranges)


@given(st.sampled_from([*RANGES, "1.0.0-rc.1"]), st.lists(versions, max_size=12))
def test_the_best_version_is_the_highest_that_is_admitted(text: str, published: list[Version]) -> None:
    reference = Reference("relu", text)
    best = reference.best(published)
    admitted = [version for version in published if reference.admits(version)]
    if best is None:
        assert not admitted
    else:
        assert best in admitted
        assert not any(best < version for version in admitted)


@given(st.from_regex(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", fullmatch=True), st.sampled_from([*RANGES, "1.0.0-rc.1+b"]))
def test_a_reference_is_read_and_written_the_same(name: str, wanted: str) -> None:
    text = f"{name}@{wanted}" if wanted else name
    reference = Reference.parse(text)
    assert (reference.name, reference.range) == (name, wanted)
    assert str(reference) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "@1",
        "relu@",
        "Relu",
        "relu-x",
        "_relu",
        "relu_",
        "re__lu",
        "1relu",
        "relu ",
        " relu",
        "relu\n",
        "réľu",
        "relu@^",
        "relu@x",
        "relu@^1.2.3.4",
        "relu@~1.x",
        "relu@01",
        "relu@^1.02",
        "relu@>=1",
        "relu@^1.2.3-rc.1",
        "relu@1.0.0@2.0.0",
        "relu@1 ",
        "relu@1.0.0\n",
        "relu@^1.",
        "relu@*",
        "relu@^-1",
        "relu@^" + "9" * 5000,
        "relu@1." + "9" * 5000,
        "../relu",
        "relu@../1",
    ],
)
def test_what_is_no_reference_is_wrong_use(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        Reference.parse(text)
    assert caught.value.hint


def test_a_range_is_written_in_ascii_digits() -> None:
    # SemVer 2.0.0 has ASCII digits only; U+0663 is ARABIC-INDIC DIGIT THREE.
    with pytest.raises(UsageError):
        Reference.parse("relu@^1\u0663")
