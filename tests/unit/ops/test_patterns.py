from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hfreg.ops.patterns import Item, Pattern


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("", []),
        ("   ", []),
        ("n", [Item("axis", "n")]),
        ("batch...", [Item("group", "batch")]),
        ("m?", [Item("optional", "m")]),
        ("1", [Item("one")]),
        ("1?", [Item("optional one")]),
        ("(g c)", [Item("split", "g", "c")]),
        ("batch... m? k", [Item("group", "batch"), Item("optional", "m"), Item("axis", "k")]),
        ("n (g c) h w", [Item("axis", "n"), Item("split", "g", "c"), Item("axis", "h"), Item("axis", "w")]),
        ("  n\t1 \n h_2 ", [Item("axis", "n"), Item("one"), Item("axis", "h_2")]),
        ("( g   c )(h w)", [Item("split", "g", "c"), Item("split", "h", "w")]),
        ("1 1 1?", [Item("one"), Item("one"), Item("optional one")]),
    ],
)
def test_every_item_of_the_grammar_is_read(text: str, items: list[Item]) -> None:
    assert Pattern.parse(text) == Pattern(tuple(items))


def test_axes_and_groups_are_named_in_order_with_splits_opened() -> None:
    pattern = Pattern.parse("batch... (g c) 1 m? k rest...")
    assert pattern.axes == ("batch", "g", "c", "m", "k", "rest")
    assert pattern.groups == ("batch", "rest")
    assert [item.axes for item in pattern.items] == [("batch",), ("g", "c"), (), ("m",), ("k",), ("rest",)]


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
        ("(a)", "(a)"),
        ("(a b c)", "(a b c)"),
        ("(a b", "(a b"),
        ("a)", "a)"),
        ("(a... b)", "(a... b)"),
        ("(a b)?", "(a b)?"),
        ("(a b)c", "(a b)c"),
        ("()", "()"),
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


@pytest.mark.parametrize("text", ["n n", "n...  n", "n? n", "(n n)", "(n c) c", "a (b a)", "x... x?"])
def test_an_axis_is_named_once(text: str) -> None:
    with pytest.raises(ValueError, match="names the axis . twice"):
        Pattern.parse(text)


names = st.from_regex(r"[a-z][a-z0-9_]{0,3}", fullmatch=True)


@st.composite
def patterns(draw: st.DrawFn) -> tuple[list[str], str]:
    """The words of a pattern, and a text with them, blanks at random."""
    words = []
    unused = draw(st.lists(names, unique=True, max_size=8))
    while unused:
        form = draw(st.sampled_from(["{}", "{}...", "{}?", "({} {})", "1", "1?"]))
        if form.count("{}") > len(unused):
            break
        words.append(form.format(*(unused.pop() for _ in range(form.count("{}")))))
        if not form.count("{}") and len(words) > 8:
            break
    blank = st.sampled_from([" ", "  ", "\t", "\n "])
    return words, "".join(draw(blank) + word for word in words) + draw(st.sampled_from(["", " "]))


@given(patterns())
def test_a_pattern_is_written_in_one_way(pattern: tuple[list[str], str]) -> None:
    words, text = pattern
    parsed = Pattern.parse(text)
    assert str(parsed) == " ".join(words)
    assert Pattern.parse(str(parsed)) == parsed


@given(st.text("ab1(). ?\t_A-", max_size=12))
def test_any_text_is_a_pattern_or_refused(text: str) -> None:
    try:
        parsed = Pattern.parse(text)
    except ValueError:
        return
    assert Pattern.parse(str(parsed)) == parsed
    assert "".join(str(parsed).split()) == "".join(text.split())
