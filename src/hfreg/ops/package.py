"""An op package on disk: a folder `<name>/` with a manifest, semantics, reference, schedules and golden tests.

Loading reads data only. The package's Python is somebody else's code: it is parsed here to see that the right
functions exist, and runs in child processes only.
"""

from __future__ import annotations

import ast
import os
import re
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from hfreg.digests import sha256, tree_digest
from hfreg.errors import ManifestError, Problem
from hfreg.ops.golden import golden_folders, stray_files
from hfreg.ops.manifest import FORMS, NOT_COMPILED, Manifest
from hfreg.ops.manifest_checks import check_manifest, check_texts, dotted
from hfreg.ops.signature import Signature, signatures
from hfreg.ops.toml_lines import key_lines, line_of

MANIFEST = "op.toml"
MAX_FILE_BYTES = 8 << 20
MAX_PACKAGE_BYTES = 64 << 20
EVIDENCE_FILES = ("reference.py", "mutants.py")
_IGNORED = {"__pycache__", ".pytest_cache", ".hypothesis", ".ruff_cache", ".mypy_cache"}


@dataclass(frozen=True)
class OpPackage:
    """A valid op package."""

    root: Path
    manifest: Manifest
    files: dict[str, bytes]
    """The content of every file by its relative path, `/` between folders. What the digest covers."""

    @property
    def name(self) -> str:
        return self.manifest.name

    @cached_property
    def digest(self) -> str:
        """The digest of all files: two packages with the same digest are the same package."""
        return tree_digest(self.files)

    @cached_property
    def build_files(self) -> dict[str, bytes]:
        """The files that a build finds: not the evidence (golden cases, reference, mutants), nor texts for people."""
        return {
            name: content
            for name, content in self.files.items()
            if name not in EVIDENCE_FILES and not name.startswith("golden/") and not name.endswith(".md")
        }

    @cached_property
    def build_digest(self) -> str:
        """The digest of all that decides the bytes of the package's kernels."""
        files = tree_digest({name: content for name, content in self.build_files.items() if name != MANIFEST})
        described = self.manifest.model_dump_json(by_alias=True, exclude=set(NOT_COMPILED))
        return sha256(f"{files}\n{described}".encode())

    @cached_property
    def signatures(self) -> tuple[Signature, ...]:
        return signatures(self.manifest)

    def signature(self, class_name: str) -> Signature:
        """The signature of an attribute class."""
        return next(signature for signature in self.signatures if signature.class_name == class_name)

    @cached_property
    def reference_attributes(self) -> frozenset[str]:
        """The attributes that the reference takes; the others only say how something is written."""
        tree = ast.parse(self.files["reference.py"])
        functions = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == self.name]
        return frozenset(argument.arg for function in functions for argument in function.args.kwonlyargs)

    @property
    def languages(self) -> tuple[str, ...]:
        """The kernel languages that this package has kernels in; the first one is the default."""
        return (*(("halide",) if "semantics.py" in self.files else ()), *self.manifest.languages)


def load_manifest(text: str, where: str) -> Manifest:
    """Read `op.toml`.

    Raises:
        ManifestError: with every problem, each with its line.
    """
    try:
        return _load_manifest(text, where)
    except RecursionError as error:
        raise ManifestError([Problem(where, "nested too deeply")]) from error


def _load_manifest(text: str, where: str) -> Manifest:
    if text.startswith("\ufeff"):
        raise ManifestError([Problem(f"{where}:1", "begins with a byte order mark: save it as UTF-8 without one")])
    try:
        values = tomllib.loads(text)
    except ValueError as error:  # an integer of thousands of digits is one, too
        raise ManifestError([Problem(where, f"not valid TOML: {error}")]) from error
    try:
        manifest = Manifest.model_validate(values)
        findings = [*check_texts(values), *check_manifest(manifest)]
    except ValidationError as error:
        details = error.errors(include_url=False)
        invalid = {detail["loc"][0] for detail in details}
        findings = [(detail["loc"], _explain(detail)) for detail in details]
        findings += [*check_texts(values), *check_manifest(_valid_part(values, invalid), invalid)]
    if findings:
        lines = key_lines(text)
        raise ManifestError([Problem(f"{where}:{line_of(lines, path)}", message) for path, message in findings])
    return manifest


def _valid_part(values: dict[str, Any], invalid: Collection[str | int]) -> Manifest:
    """A manifest of the fields that are valid."""
    kinds: dict[str, Any] = {name: field.annotation for name, field in Manifest.model_fields.items()}
    given = {name: kind for name, kind in kinds.items() if name in values and name not in invalid}
    return Manifest.model_construct(**{n: TypeAdapter(kind).validate_python(values[n]) for n, kind in given.items()})


def _explain(detail: ErrorDetails) -> str:
    key, given = dotted(detail["loc"]), detail["input"]
    match detail["type"]:
        case "extra_forbidden":
            return f"{key}: unknown key; see `hfreg schema op` for the keys there are"
        case "missing":
            return f"{key}: is missing"
        case "string_pattern_mismatch":
            return f"{key}: expected {FORMS[detail['ctx']['pattern']]}, got {given!r}"
    message = detail["msg"][0].lower() + detail["msg"][1:]
    return f"{key}: {message}, got {given!r}" if isinstance(given, (str, int, float, bool)) else f"{key}: {message}"


def read_files(root: Path) -> dict[str, bytes]:
    """All files of a package folder.

    Raises:
        ManifestError: a symbolic link or a special file, a name that is not portable, or too many bytes.
    """
    files: dict[str, bytes] = {}
    problems: list[Problem] = []
    total = 0
    for path in sorted(_walk(root)):
        name = path.relative_to(root).as_posix()
        if path.is_symlink() or not path.is_file():
            problems.append(Problem(str(path), "only plain files belong in a package"))
            continue
        size = path.stat().st_size
        total += size
        if not name.isascii() or any(part.startswith(".") for part in name.split("/")) or "\\" in name:
            problems.append(Problem(str(path), "file names are ASCII and do not start with a dot"))
        elif size > MAX_FILE_BYTES or total > MAX_PACKAGE_BYTES:
            problems.append(Problem(str(path), f"larger than {MAX_FILE_BYTES >> 20} MiB, or the package than 64"))
        else:
            files[name] = path.read_bytes()
    if problems:
        raise ManifestError(problems)
    return files


def _walk(root: Path) -> Iterator[Path]:
    for folder, folders, names in os.walk(root):
        here = Path(folder)
        yield from (here / name for name in folders if (here / name).is_symlink())
        folders[:] = [name for name in folders if name not in _IGNORED and not (here / name).is_symlink()]
        yield from (here / name for name in names if not name.endswith(".pyc"))


def load_package(root: Path) -> OpPackage:
    """Load the package in a folder, and check its manifest and its files.

    Raises:
        ManifestError: with every problem that was found.
    """
    package = read_package(root)
    if problems := list(check_files(package)):
        raise ManifestError(problems)
    return package


def read_package(root: Path) -> OpPackage:
    """Load the package in a folder and check its manifest, but not yet the files around it.

    Raises:
        ManifestError: with every problem that was found.
    """
    root = root.resolve()
    path = root / MANIFEST
    if not path.is_file():
        raise ManifestError(
            [Problem(str(path), "there is no such file")],
            hint="an op package is a folder with an op.toml; see `hfreg new`",
        )
    files = read_files(root)
    try:
        text = files[MANIFEST].decode()
    except UnicodeDecodeError as error:
        raise ManifestError([Problem(str(path), "not UTF-8 text")]) from error
    return OpPackage(root, load_manifest(text, _display(path)), files)


def manifest_line(package: OpPackage, *path: str | int) -> str:
    """Where a key of the manifest stands, as `op.toml:12`."""
    lines = key_lines(package.files[MANIFEST].decode())
    return f"{_display(package.root / MANIFEST)}:{line_of(lines, path)}"


def _display(path: Path) -> str:
    """The path as a user in the current folder would write it."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def check_files(package: OpPackage) -> Iterator[Problem]:
    """Problems of the files around the manifest."""
    root, manifest, files = package.root, package.manifest, package.files
    if root.name != manifest.name:
        message = f"the folder is called {root.name!r}, the operator {manifest.name!r}"
        yield Problem(manifest_line(package, "name"), message)
    yield from _check_function(package, "reference.py", manifest.name, is_required=True)
    yield from _check_function(package, "semantics.py", manifest.name, is_required=not manifest.languages)
    if manifest.accuracy.bound in ("E3", "E5"):
        yield from _check_function(package, "reference.py", "error_scale", is_required=True)
    for name, language in manifest.languages.items():
        for source in language.sources:
            if source not in files:
                yield Problem(manifest_line(package, "languages", name), f"there is no file {source}")
    entry = re.compile(rf"^#.*(?<![\w.+-])v?{re.escape(manifest.version)}(?![\w.+-])", re.MULTILINE)
    if not entry.search(files.get("CHANGELOG.md", b"").decode(errors="replace")):
        yield Problem(_display(root / "CHANGELOG.md"), f"has no entry for version {manifest.version}")
    if not golden_folders(files):
        yield Problem(_display(root / "golden"), "holds no golden test (golden/<case>/model.onnx)")
    for name in stray_files(files):
        yield Problem(
            _display(root / name), "is no part of a golden test (model.onnx, test_data_set_0/input_0.pb, ...)"
        )


def _check_function(package: OpPackage, file: str, function: str, *, is_required: bool) -> Iterator[Problem]:
    place = _display(package.root / file)
    if file not in package.files:
        if is_required:
            yield Problem(place, f"there is no such file; it defines the function {function}")
        return
    try:
        tree = ast.parse(package.files[file], filename=place)
    except SyntaxError as error:
        yield Problem(f"{place}:{error.lineno}", f"not valid Python: {error.msg}")
        return
    found = next((n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == function), None)
    if found is None:
        yield Problem(place, f"defines no function {function!r}")
        return
    yield from _check_parameters(package, place, found)


def _check_parameters(package: OpPackage, place: str, function: ast.FunctionDef) -> Iterator[Problem]:
    """Inputs are positional parameters under their own names; attributes are keyword-only ones."""
    manifest, arguments = package.manifest, function.args
    given = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
    inputs = list(manifest.inputs)
    if given != inputs and arguments.vararg is None:
        yield Problem(
            f"{place}:{function.lineno}", f"{function.name}({', '.join(given)}) should take ({', '.join(inputs)})"
        )
    extra = ("types", "expected") if function.name == "error_scale" else ("types",)
    for name in _unknown(arguments.kwonlyargs, (*manifest.attributes, *extra)):
        yield Problem(f"{place}:{function.lineno}", f"{function.name} takes {name!r}, which is no attribute in op.toml")


def _unknown(arguments: Iterable[ast.arg], known: Iterable[str]) -> list[str]:
    return [argument.arg for argument in arguments if argument.arg not in known]


def copy_package(files: Mapping[str, bytes], folder: Path) -> None:
    """Write files of a package, as they were when it was loaded, into a new folder."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def find_packages(folder: Path) -> list[Path]:
    """The op packages in a folder, or the folder itself if it is one."""
    if (folder / MANIFEST).is_file():
        return [folder]
    return sorted(path.parent for path in folder.glob(f"*/{MANIFEST}") if not path.parent.name.startswith("_"))
