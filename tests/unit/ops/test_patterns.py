from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hfreg.ops.patterns import Item, ItemKind, Pattern


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("", []),
        ("   ", []),
        ("n", [("axis", "n")]),
        ("batch...", [("group", "batch")]),
        ("m?", [("optional", "m")]),
        ("1", [("one", "")]),
        ("1?", [("optional one", "")]),
        ("(g c)", [("split", "g c")]),
        ("{h w}", [("merge", "h w")]),
        ("{d h w}", [("merge", "d h w")]),
        ("batch... m? k", [("group", "batch"), ("optional", "m"), ("axis", "k")]),
        ("n (g c) h w", [("axis", "n"), ("split", "g c"), ("axis", "h"), ("axis", "w")]),
        ("  n\t1 \n h_2 ", [("axis", "n"), ("one", ""), ("axis", "h_2")]),
        ("( g   c )(h w)", [("split", "g c"), ("split", "h w")]),
        ("n{ h\n w }(g c){a b}", [("axis", "n"), ("merge", "h w"), ("split", "g c"), ("merge", "a b")]),
        ("1 1 1?", [("one", ""), ("one", ""), ("optional one", "")]),
    ],
)
def test_every_item_of_the_grammar_is_read(text: str, items: list[tuple[ItemKind, str]]) -> None:
    assert Pattern.parse(text) == Pattern(tuple(Item(kind, tuple(axes.split())) for kind, axes in items))


def test_axes_and_groups_are_named_in_order_with_splits_and_merges_opened() -> None:
    pattern = Pattern.parse("batch... (g c) 1 m? {h w} k rest...")
    assert pattern.axes == ("batch", "g", "c", "m", "h", "w", "k", "rest")
    assert pattern.groups == ("batch", "rest")
    assert [item.axis for item in pattern.items] == ["batch", "g", "", "m", "h", "k", "rest"]
    # A group, an optional axis: none for certain. A split is one axis of the tensor, a merge several.
    assert [item.takes for item in pattern.items] == [0, 1, 1, 0, 2, 1, 0]


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("N", "N"),
        ("a B", "B"),
        ("2", "2"),
        ("11", "11"),
        ("1...", "1..."),
        ("a..", "a.."),
        ("a....", "a...."),
        ("a??", "a??"),
        ("a?...", "a?..."),
        ("a, b", "a, b"),
        ("(a b", "(a b"),
        ("a)", "a)"),
        ("(a... b)", "(a... b)"),
        ("(a b)?", "(a b)?"),
        ("(a b)c", "(a b)c"),
        ("()", "()"),
        ("{}", "{}"),
        ("{a b", "{a b"),
        ("{a... b}", "{a... b}"),
        ("{a b}c", "{a b}c"),
        ("{a b)", "{a b)"),
        ("{a b}?", "{a b}?"),
        ("_a", "_a"),
        ("a-b", "a-b"),
        ("a ? b", "? b"),
        ("...", "..."),
    ],
)
def test_what_the_grammar_does_not_have_is_refused_with_the_rest_that_cannot_be_read(text: str, rest: str) -> None:
    with pytest.raises(ValueError, match="is no shape pattern: cannot read") as caught:
        Pattern.parse(text)
    assert str(caught.value).endswith(f"cannot read {rest!r}")


@pytest.mark.parametrize("text", ["(a)", "{a}", "(a b c)", "{a b c d}"])
def test_a_split_has_two_names_and_a_merge_two_or_three(text: str) -> None:
    with pytest.raises(ValueError, match="a split has two names, a merge two or three"):
        Pattern.parse(text)


@pytest.mark.parametrize("text", ["n n", "n...  n", "n? n", "(n n)", "(n c) c", "a (b a)", "x... x?", "{h w} h"])
def test_an_axis_is_named_once(text: str) -> None:
    with pytest.raises(ValueError, match=r"names the axis \w twice"):
        Pattern.parse(text)


names = st.from_regex(r"[a-z][a-z0-9_]{0,3}", fullmatch=True)


@st.composite
def patterns(draw: st.DrawFn) -> tuple[list[str], str]:
    """The words of a pattern, and a text with them, blanks at random."""
    words: list[str] = []
    unused = draw(st.lists(names, unique=True, max_size=8))
    while unused:
        form = draw(st.sampled_from(["{}", "{}...", "{}?", "({} {})", "{{{} {}}}", "{{{} {} {}}}", "1", "1?"]))
        taken = form.replace("{{", "").count("{}")
        if taken > len(unused) or len(words) > 8:
            break
        words.append(form.format(*(unused.pop() for _ in range(taken))))
    blank = st.sampled_from([" ", "  ", "\t", "\n "])
    return words, "".join(draw(blank) + word for word in words) + draw(st.sampled_from(["", " "]))


@given(patterns())
def test_a_pattern_is_written_in_one_way(pattern: tuple[list[str], str]) -> None:
    words, text = pattern
    parsed = Pattern.parse(text)
    assert str(parsed) == " ".join(words)
    assert Pattern.parse(str(parsed)) == parsed


@given(st.text("ab1(){}. ?\t_A-", max_size=12))
def test_any_text_is_a_pattern_or_refused(text: str) -> None:
    try:
        parsed = Pattern.parse(text)
    except ValueError:
        return
    assert Pattern.parse(str(parsed)) == parsed
    assert "".join(str(parsed).split()) == "".join(text.split())
