"""The documents are true where a program can tell: links lead somewhere, and commands are ones that hfreg has."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from hfreg.cli.main import cli

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("docs", "kernels", "matrix", "ops", "passports", "registry")
DOCUMENTS = sorted({*ROOT.glob("*.md"), *(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.md"))})
LINK = re.compile(r"(?<!!)\[[^\]]*\]\((?P<target>[^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
CONSOLE = re.compile(r"^```(?:console|sh|bash)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`(hfreg [^`]+)`")
PLACEHOLDER = re.compile(r"^[A-Z]+(\|[A-Z]+)?(\.\.\.|…)?$|^…$")
MAKE_TARGET = re.compile(r"^([a-z][a-z-]*):", re.MULTILINE)


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def anchors(path: Path) -> set[str]:
    """The fragments that a page's headings have, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", FENCE.sub("", path.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def problem(document: Path, target: str) -> str:
    """What is wrong with a link; empty where nothing is."""
    if target.startswith("https://"):
        return ""
    name, _, fragment = target.partition("#")
    path = (document.parent / name).resolve() if name else document
    if not path.exists() or ROOT not in (path, *path.parents):
        return f"{target} is not there"
    if fragment and (path.suffix != ".md" or fragment not in anchors(path)):
        return f"{target}: no such heading"
    return ""


@pytest.mark.parametrize("document", DOCUMENTS, ids=relative)
def test_links_lead_somewhere(document: Path) -> None:
    targets = [match["target"] for match in LINK.finditer(FENCE.sub("", document.read_text()))]
    assert [found for target in targets if (found := problem(document, target))] == []


@pytest.mark.parametrize(
    ("target", "message"),
    [("nothing.md", "is not there"), ("README.md#nothing", "no such heading"), ("../../etc/passwd", "is not there")],
)
def test_a_broken_link_is_found(target: str, message: str) -> None:
    assert message in problem(ROOT / "CHANGELOG.md", target)


def command_lines(text: str) -> Iterator[str]:
    """The calls of hfreg that a document shows."""
    for block in CONSOLE.finditer(text):
        for line in block["text"].replace("\\\n", " ").splitlines():
            call = re.sub(r"\s+#.*$", "", line.removeprefix("$ "))
            yield from (part.strip() for part in re.split(r"&&|\|", call) if part.strip().startswith("hfreg "))
    yield from INLINE.findall(FENCE.sub("", text))


def command_problem(line: str) -> str:
    """What the command line would not understand of a call; empty where it understands all of it."""
    words = shlex.split(re.split(r" [>|] ", line)[0])[1:]
    command: click.Command = cli
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        name = words.pop(0)
        if PLACEHOLDER.match(name):
            return ""
        inner = command.get_command(click.Context(command), name)
        if inner is None:
            return f"{line}: there is no command {name!r}"
        command = inner
    known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    known |= {"--help", "-h"}
    unknown = [word for word in words if word.startswith("-") and word.partition("=")[0] not in known]
    return f"{line}: no option {unknown[0]}" if unknown else ""


@pytest.mark.parametrize("document", DOCUMENTS, ids=relative)
def test_commands_exist(document: Path) -> None:
    found = [message for line in command_lines(document.read_text()) if (message := command_problem(line))]
    assert found == []


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("hfreg frobnicate", "there is no command 'frobnicate'"),
        ("hfreg test ops/relu --colour red", "no option --colour"),
        ("hfreg matrix burn", "there is no command 'burn'"),
        ("hfreg publish ops/relu --json", ""),
    ],
)
def test_a_wrong_command_is_found(line: str, message: str) -> None:
    assert (message in command_problem(line)) if message else (command_problem(line) == "")


def test_make_targets_exist() -> None:
    targets = set(MAKE_TARGET.findall((ROOT / "Makefile").read_text()))
    shown = {
        name
        for document in DOCUMENTS
        for name in re.findall(r"(?:`|^\$? ?)make ([a-z][a-z-]*)", document.read_text(), re.MULTILINE)
    }
    assert shown <= targets


def test_the_commands_of_the_command_line_are_in_the_readme() -> None:
    shown = {line.split()[1] for line in command_lines((ROOT / "README.md").read_text())}
    assert set(cli.list_commands(click.Context(cli))) <= shown
