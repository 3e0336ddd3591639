"""The toolchain: zig compiles C and links, for every target, from one pinned wheel.

Only zig's C front end and its linkers are used, on freestanding objects: no C library is built or linked.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from hfreg.digests import file_digest
from hfreg.errors import BuildError, MachineError
from hfreg.kernels.targets import Target
from hfreg.processes import Killed, TimedOut, clean_environment, run
from hfreg.resources import cache_home, root_folder

TIMEOUT_S = 300.0
WARNINGS = ("-Wall", "-Wextra", "-Werror")
_WASM_LINK: tuple[str, ...] = (
    "--no-entry",
    "--strip-all",
    "--gc-sections",
    "--stack-first",
    "-z",
    "stack-size=1048576",
)
_WASM_LINK += ("--export-memory", "--fatal-warnings")
_ELF_LINK: tuple[str, ...] = (
    "-shared",
    "--strip-all",
    "--gc-sections",
    "--build-id=none",
    "--hash-style=gnu",
    "-Bsymbolic",
)
_ELF_LINK += ("-z", "noexecstack", "-z", "relro", "-z", "now", "--fatal-warnings")


@dataclass(frozen=True)
class Tool:
    """A program or library that takes part in a build."""

    name: str
    version: str
    path: Path
    """The file that decides what it does."""

    @cached_property
    def digest(self) -> str:
        """The digest of that file. Kept on disk by size and time of change: the files have over 100 MB."""
        stat = self.path.stat()
        key = f"{self.name}-{self.version}-{stat.st_size}-{stat.st_mtime_ns}-{stat.st_ino}"
        note = cache_home() / "tools" / key
        if note.is_file():
            return note.read_text()
        digest = file_digest(self.path)
        note.parent.mkdir(parents=True, exist_ok=True)
        temporary = note.with_name(f"{note.name}.{os.getpid()}")
        temporary.write_text(digest)
        temporary.replace(note)
        return digest


@cache
def zig() -> Tool:
    """The zig of the `ziglang` wheel.

    Raises:
        MachineError: it is not installed.
    """
    return _tool("zig", "ziglang", "zig")


@cache
def halide() -> Tool:
    """The Halide library of the `halide` wheel.

    Raises:
        MachineError: it is not installed.
    """
    return _tool("halide", "halide", "lib*/libHalide.so*")


def _tool(name: str, package: str, pattern: str) -> Tool:
    """A tool that a wheel brings: of the files of its package that match a pattern, the one with the shortest name."""
    found = importlib.util.find_spec(package)
    if found is None or not found.submodule_search_locations:
        raise MachineError(
            f"{name} is not installed", hint="building kernels needs the extra: pip install 'hfreg[build]'"
        )
    folder = Path(found.submodule_search_locations[0])
    paths = sorted(folder.glob(pattern), key=lambda path: (len(path.name), path.name))
    if not paths:
        raise MachineError(f"{folder} holds no {pattern}", hint=f"install {package} again")
    return Tool(name, importlib.metadata.version(package), paths[0].resolve())


def compile_c(source: Path, output: Path, target: Target, *, flags: Sequence[str] = (), optimize: str = "-O2") -> None:
    """Compile one C file to an object.

    Raises:
        BuildError: the compiler refuses it; the message is the compiler's.
    """
    assert target.build is not None
    position = ["-fPIC"] if target.build.format == "elf" else []
    _zig(
        "cc", "-target", target.build.zig_target, f"-mcpu={target.build.zig_cpu}", "-std=c11", optimize, "-g0",
        "-ffreestanding", "-fvisibility=hidden", "-fno-stack-protector", "-fno-sanitize=all", "-ffp-contract=on",
        *position, *WARNINGS, "-I", str(include_folder()), *flags, "-c", source.name, "-o", str(output),
        cwd=source.parent,
    )  # fmt: skip


def link_shared(objects: Sequence[Path], output: Path, target: Target, *, exports: Sequence[str], closed: bool) -> None:
    """Link objects into a shared object, or a WebAssembly module.

    Args:
        objects: what to link.
        output: the file to write.
        target: for which target.
        exports: the symbols that stay visible.
        closed: whether every symbol must be defined, so that the result imports nothing.

    Raises:
        BuildError: a symbol is missing, or the linker fails.
    """
    assert target.build is not None
    names = [str(path) for path in objects]
    if target.build.format == "wasm":
        visible = [f"--export={name}" for name in exports]
        _zig("wasm-ld", *_WASM_LINK, *visible, *names, "-o", str(output), cwd=output.parent)
        return
    script = output.with_suffix(".map")
    script.write_text("{ global: " + " ".join(f"{name};" for name in exports) + " local: *; };\n")
    defined = ("-z", "defs") if closed else ()
    visible = [f"--version-script={script}"]
    _zig("ld.lld", *_ELF_LINK, *defined, *visible, *names, "-o", str(output), cwd=output.parent)


def include_folder() -> Path:
    """The folder of the public headers."""
    return root_folder("kernels") / "include"


def _zig(*arguments: str, cwd: Path) -> None:
    tool = zig()
    cache = cache_home() / "zig"
    environment = clean_environment(ZIG_GLOBAL_CACHE_DIR=str(cache), ZIG_LOCAL_CACHE_DIR=str(cache))
    ending = run([str(tool.path), *arguments], timeout_s=TIMEOUT_S, cwd=cwd, env=environment)
    if isinstance(ending, Killed):  # no input does that: the machine had no memory or processes to give
        raise MachineError(f"zig {arguments[0]} ended with {ending}", hint="try again with fewer --jobs")
    if isinstance(ending, TimedOut):
        raise BuildError(f"zig {arguments[0]} was stopped after {ending.seconds:g} s")
    if ending.status:
        raise BuildError(f"zig {arguments[0]} failed:\n{ending.stderr}")
