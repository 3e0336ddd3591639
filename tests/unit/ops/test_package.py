from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest

from hfreg.errors import ManifestError
from hfreg.ops import package as package_module
from hfreg.ops.package import copy_package, find_packages, load_manifest, load_package, read_files
from unit.samples import UNARY, golden_files, manifest_text, package_files, write_files


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A valid package called `sample`."""
    return write_files(tmp_path / "sample", package_files())


def problems(root: Path) -> dict[str, str]:
    """The problems of a package: what is wrong, by the place relative to the package."""
    with pytest.raises(ManifestError) as caught:
        load_package(root)
    return {p.where.removeprefix(f"{root.resolve()}/"): p.message for p in caught.value.problems}


def test_a_valid_package_is_loaded_with_all_its_files(root: Path) -> None:
    package = load_package(root)
    assert package.name == "sample"
    assert package.files == package_files()
    assert package.languages == ("halide",)
    assert [signature.class_name for signature in package.signatures] == ["general"]
    # The digest is SHA-256 over the JSON object of the files' digests, in canonical form.
    table = {name: "sha256:" + hashlib.sha256(content).hexdigest() for name, content in package_files().items()}
    text = json.dumps(table, sort_keys=True, separators=(",", ":"))
    assert package.digest == "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def test_caches_are_no_part_of_a_package(root: Path) -> None:
    before = load_package(root).digest
    write_files(
        root,
        {
            "__pycache__/reference.cpython-311.pyc": b"x",
            "golden/__pycache__/x": b"x",
            ".pytest_cache/v/x": b"x",
            ".hypothesis/x": b"x",
            ".mypy_cache/x": b"x",
            ".ruff_cache/x": b"x",
            "stray.pyc": b"x",
        },
    )
    assert load_package(root).digest == before


def test_every_changed_added_or_removed_file_changes_the_digest(root: Path) -> None:
    digests = {load_package(root).digest}
    write_files(root, {"notes.md": b"1"})
    digests.add(load_package(root).digest)
    write_files(root, {"notes.md": b"2"})
    digests.add(load_package(root).digest)
    (root / "notes.md").rename(root / "other.md")
    digests.add(load_package(root).digest)
    assert len(digests) == 4


def test_a_folder_without_a_manifest_is_no_package(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match="there is no such file") as caught:
        load_package(tmp_path)
    assert "an op package is a folder with an op.toml" in caught.value.hint


def test_the_manifest_is_text(root: Path) -> None:
    write_files(root, {"op.toml": b"\xff"})
    assert problems(root) == {"op.toml": "not UTF-8 text"}


def test_toml_that_does_not_parse_says_where() -> None:
    with pytest.raises(ManifestError, match=r"op\.toml: not valid TOML: .*line 2, column 5"):
        load_manifest("a = 1\nb = [[\n".replace("[[", "=="), "op.toml")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = " + "[" * 5000, "nested too deeply"),
        ("x = " + "{x=" * 5000, "nested too deeply"),
        ("x = " + "[" * 200 + "]" * 200, "x: unknown key"),
        ("x = " + "9" * 5000, "not valid TOML: .*integer"),
        ("\ufeffschema = 1", "begins with a byte order mark"),
    ],
    ids=["arrays", "tables", "arrays that end", "digits", "byte order mark"],
)
def test_toml_that_no_parser_should_meet_is_a_problem_too(text: str, message: str) -> None:
    with pytest.raises(ManifestError, match=message):
        load_manifest(text, "op.toml")


@pytest.mark.parametrize(
    "character",
    [
        "\\u0007",
        "\\u001b",
        "\\n",
        "\\u007f",
        "\\u009b",
        "\\u061c",
        "\\u200f",
        "\\u2028",
        "\\u202e",
        "\\u2066",
        "\\u2069",
    ],
)
def test_texts_have_no_control_characters(character: str) -> None:
    text = manifest_text(UNARY).splitlines()
    assert text[14] == "[inputs.x]"
    line = next(number for number, content in enumerate(text, start=1) if content.startswith("summary"))
    text[line - 1] = f'summary = "a {character}b"'
    with pytest.raises(ManifestError) as caught:
        load_manifest("\n".join(text), "op.toml")
    (problem,) = caught.value.problems
    assert problem.where == f"op.toml:{line}"
    assert problem.message.startswith("summary: has the control character U+")
    assert problem.message.isprintable()


def test_a_doc_has_lines_and_any_letters(tmp_path: Path) -> None:
    text = manifest_text(UNARY).replace("[inputs.x]\n", '[inputs.x]\ndoc = """Größe\n数 × µ"""\n')
    assert load_manifest(text, "op.toml").inputs["x"].doc == "Größe\n数 × µ"


def test_a_control_character_in_a_key_is_not_printed() -> None:
    with pytest.raises(ManifestError) as caught:
        load_manifest(manifest_text(UNARY) + '["\\u001b[2J"]\nx = "\\u001b"\n', "op.toml")
    assert len(caught.value.problems) == 3
    assert all(problem.message.isprintable() for problem in caught.value.problems)


def test_every_problem_of_the_model_is_reported_at_once_with_its_line() -> None:
    text = manifest_text(UNARY).splitlines()
    assert (text[2], text[14], text[18]) == ('version = "1.0.0"', "[inputs.x]", "[outputs.y]")
    text[2] = 'version = "1.0"'
    text[15] = 'typ = "T"'
    text[20] = "shape = 3"
    text.append("bond = 1")
    with pytest.raises(ManifestError) as caught:
        load_manifest("\n".join(text), "op.toml")
    found = [str(problem) for problem in caught.value.problems]
    assert sorted(found) == sorted(
        [
            "op.toml:3: version: expected a version such as 1.0.0 (SemVer), got '1.0'",
            "op.toml:15: inputs.x.type: is missing",
            "op.toml:16: inputs.x.typ: unknown key; see `hfreg schema op` for the keys there are",
            "op.toml:21: outputs.y.shape: input should be a valid string, got 3",
            f"op.toml:{len(text)}: accuracy.bond: unknown key; see `hfreg schema op` for the keys there are",
        ]
    )


def test_problems_of_the_model_and_problems_of_the_checks_are_reported_together() -> None:
    # manifest.py: "both kinds are reported together, each with its line, by `load_manifest`".
    text = manifest_text(UNARY).replace('shape = "i..."', 'shape = "I"', 1) + "unknown = 1\n"
    with pytest.raises(ManifestError) as caught:
        load_manifest(text, "op.toml")
    messages = " ".join(problem.message for problem in caught.value.problems)
    assert "unknown key" in messages
    assert "is no shape pattern" in messages


def test_a_check_that_reads_no_invalid_field_runs_and_one_that_reads_one_does_not() -> None:
    # Of a manifest without attributes, it would be false that there is no attribute `size`.
    text = manifest_text(UNARY.replace('shape = "i..."', 'shape = "I"', 1), version="1")
    text += '[axes.n]\nattribute = "size"\n[attributes.size]\ntype = "integer"\n'
    with pytest.raises(ManifestError) as caught:
        load_manifest(text, "op.toml")
    assert [problem.message.partition(":")[0] for problem in caught.value.problems] == [
        "version",
        "attributes.size.type",
        "'I' is no shape pattern",
    ]


@pytest.mark.parametrize("kind", ["file", "folder", "broken", "ignored folder", "outside"])
def test_a_symbolic_link_is_refused(root: Path, tmp_path: Path, kind: str) -> None:
    (tmp_path / "secret").write_text("secret")
    name, target = {
        "file": ("link.md", "CHANGELOG.md"),
        "folder": ("golden/link", "a"),
        "broken": ("link", "nowhere"),
        "ignored folder": ("__pycache__", "golden"),
        "outside": ("notes.md", "../secret"),
    }[kind]
    (root / name).symlink_to(target)
    assert problems(root) == {name: "only plain files belong in a package"}


def test_a_manifest_that_is_a_link_is_refused(root: Path) -> None:
    (root / "op.toml").rename(root / "real.toml")
    (root / "op.toml").symlink_to("real.toml")
    assert problems(root) == {"op.toml": "only plain files belong in a package"}


def test_a_package_may_be_reached_through_a_link(root: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("sample")
    assert load_package(tmp_path / "link").root == root.resolve()


def test_a_named_pipe_is_refused_and_not_read(root: Path) -> None:
    os.mkfifo(root / "pipe")
    assert problems(root) == {"pipe": "only plain files belong in a package"}


@pytest.mark.parametrize("name", [".hidden", ".git/config", "golden/.x/y", "naïve.md", "a\\b"])
def test_a_name_that_is_not_portable_is_refused(root: Path, name: str) -> None:
    write_files(root, {name: b""})
    assert problems(root) == {name: "file names are ASCII and do not start with a dot"}


def test_files_and_packages_have_a_largest_size(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (root / "large").open("wb") as file:
        file.truncate((8 << 20) + 1)  # a sparse file: 8 MiB and a byte
    assert problems(root) == {"large": "larger than 8 MiB, or the package than 64"}
    (root / "large").unlink()
    monkeypatch.setattr(package_module, "MAX_PACKAGE_BYTES", sum(map(len, package_files().values())))
    assert load_package(root).name == "sample"
    write_files(root, {"zzz": b"x"})
    assert problems(root) == {"zzz": "larger than 8 MiB, or the package than 64"}


def test_all_files_that_do_not_belong_are_reported_at_once(root: Path) -> None:
    (root / "link").symlink_to("op.toml")
    write_files(root, {".a": b"", ".b": b""})
    assert set(problems(root)) == {"link", ".a", ".b"}
    with pytest.raises(ManifestError, match="3 problems"):
        read_files(root)


FILES = package_files()
E5 = manifest_text(UNARY.replace("E0", "E5")).encode()
C = (manifest_text(UNARY) + '[languages.c]\nsources = ["c/a.c", "c/b.c"]\n').encode()


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (
            {"reference.py": None},
            {"reference.py": "there is no such file; it defines the function sample"},
        ),
        (
            {"semantics.py": None},
            {"semantics.py": "there is no such file; it defines the function sample"},
        ),
        ({"reference.py": b"x = 1\n\ndef broken(:\n"}, {"reference.py:3": "not valid Python: invalid syntax"}),
        ({"reference.py": b"def other(x): ...\n"}, {"reference.py": "defines no function 'sample'"}),
        ({"reference.py": b"class A:\n    def sample(x): ...\n"}, {"reference.py": "defines no function 'sample'"}),
        (
            {"semantics.py": b"\n\ndef sample(x, y): ...\n"},
            {"semantics.py:3": "sample(x, y) should take (x)"},
        ),
        ({"semantics.py": b"def sample(z): ...\n"}, {"semantics.py:1": "sample(z) should take (x)"}),
        ({"reference.py": b"def sample(*xs): ...\n"}, {}),
        ({"reference.py": b"def sample(x, /): ...\n"}, {}),
        ({"reference.py": b"def sample(x, *, types): ...\n"}, {}),
        (
            {"reference.py": b"def sample(x, *, axis, keep): ...\n"},
            {"reference.py:1": "sample takes 'keep', which is no attribute in op.toml"},
        ),
        ({"op.toml": E5}, {"reference.py": "defines no function 'error_scale'"}),
        (
            {"op.toml": E5, "reference.py": b"def sample(x): ...\ndef error_scale(x, *, expected): ...\n"},
            {},
        ),
        (
            {"op.toml": E5, "reference.py": b"def sample(x): ...\ndef error_scale(x, *, expect): ...\n"},
            {"reference.py:2": "error_scale takes 'expect', which is no attribute in op.toml"},
        ),
        ({"op.toml": C, "c/a.c": b""}, {"op.toml:25": "there is no file c/b.c"}),
        ({"op.toml": C, "c/a.c": b"", "c/b.c": b"", "semantics.py": None}, {}),
        ({"CHANGELOG.md": None}, {"CHANGELOG.md": "has no entry for version 1.0.0"}),
        ({"CHANGELOG.md": b"## 0.9.0\n"}, {"CHANGELOG.md": "has no entry for version 1.0.0"}),
        (dict.fromkeys(golden_files()), {"golden": "holds no golden test (golden/<case>/model.onnx)"}),
    ],
)
def test_the_files_around_the_manifest_are_checked(
    tmp_path: Path, changes: dict[str, bytes | None], expected: dict[str, str]
) -> None:
    files = {name: content for name, content in {**FILES, **changes}.items() if content is not None}
    if b"keep" in (changes.get("reference.py") or b""):
        files["op.toml"] = files["op.toml"] + b'[attributes.axis]\ntype = "int"\ndefault = 0\n'
    root = write_files(tmp_path / "sample", files)
    if expected:
        assert problems(root) == expected
    else:
        assert load_package(root).name == "sample"


def test_a_version_that_is_part_of_another_one_has_no_entry_of_its_own(tmp_path: Path) -> None:
    # 1.0.0 has no entry in a change log that tells of 11.0.0 and 1.0.01 only.
    root = write_files(tmp_path / "sample", {**FILES, "CHANGELOG.md": b"## 11.0.0\n\n## 1.0.0-rc.1\n"})
    assert problems(root) == {"CHANGELOG.md": "has no entry for version 1.0.0"}


@pytest.mark.parametrize("entry", ["## 1.0.0", "# [1.0.0] - 2026-11-30", "### v1.0.0", "## sample 1.0.0 (first)"])
def test_a_heading_of_the_change_log_names_the_version(tmp_path: Path, entry: str) -> None:
    root = write_files(tmp_path / "sample", {**FILES, "CHANGELOG.md": f"text\n{entry}\n".encode()})
    assert load_package(root).name == "sample"
    write_files(root, {"CHANGELOG.md": f"## 2.0.0\n\nSince {entry.strip('#')}\n".encode()})
    assert problems(root) == {"CHANGELOG.md": "has no entry for version 1.0.0"}


def test_the_folder_has_the_name_of_the_operator(tmp_path: Path) -> None:
    root = write_files(tmp_path / "other", FILES)
    assert problems(root) == {"op.toml:2": "the folder is called 'other', the operator 'sample'"}


def test_all_problems_of_the_files_are_reported_at_once(tmp_path: Path) -> None:
    root = write_files(tmp_path / "other", {"op.toml": FILES["op.toml"], "reference.py": b"("})
    assert set(problems(root)) == {"op.toml:2", "reference.py:1", "semantics.py", "CHANGELOG.md", "golden"}


def test_paths_are_shown_as_a_user_in_this_folder_would_write_them(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "CHANGELOG.md").unlink()
    monkeypatch.chdir(root.parent)
    with pytest.raises(ManifestError) as caught:
        load_package(Path("sample"))
    assert [problem.where for problem in caught.value.problems] == ["sample/CHANGELOG.md"]


def test_a_reference_takes_the_attributes_that_its_function_names(tmp_path: Path) -> None:
    text = manifest_text(UNARY) + '[attributes.axis]\ntype = "int"\ndefault = 0\n'
    text += '[attributes.hint]\ntype = "int"\ndefault = 0\n'
    files = {**FILES, "op.toml": text.encode(), "reference.py": b"def sample(x, *, axis=1): ...\n"}
    assert load_package(write_files(tmp_path / "sample", files)).reference_attributes == {"axis"}


def test_a_package_is_copied_as_it_was_loaded(root: Path, tmp_path: Path) -> None:
    package = load_package(root)
    write_files(root, {"reference.py": b"changed since"})
    copy_package(package.files, tmp_path / "copy")
    assert read_files(tmp_path / "copy") == FILES


def test_packages_are_found_in_a_folder_or_are_the_folder(tmp_path: Path) -> None:
    for name in ("b", "a", "_template", "empty"):
        write_files(tmp_path / name, {} if name == "empty" else {"op.toml": b""})
    (tmp_path / "empty").mkdir(exist_ok=True)
    write_files(tmp_path / "deep" / "er", {"op.toml": b""})
    assert find_packages(tmp_path) == [tmp_path / "a", tmp_path / "b"]
    assert find_packages(tmp_path / "a") == [tmp_path / "a"]
    assert find_packages(tmp_path / "empty") == []


def test_loading_a_package_runs_nothing_of_it(root: Path, tmp_path: Path) -> None:
    program = f"open({str(tmp_path / 'ran')!r}, 'w')\ndef sample(x): ...\n".encode()
    write_files(root, {"reference.py": program, "semantics.py": program})
    load_package(root)
    assert not (tmp_path / "ran").exists()
