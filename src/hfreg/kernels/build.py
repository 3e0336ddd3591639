"""Build kernels: body, front end and signature, linked into one shared object that imports nothing.

Every kernel is built twice, in different folders with different hash seeds, and the two must have the same bytes.
A build is named by its action digest: whatever could change its bytes is in it, so equal actions share one result.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from hfreg.digests import json_digest, sha256, short, tree_digest
from hfreg.errors import BuildError
from hfreg.files import write_atomic
from hfreg.kernels.artifact import Kernel, KernelKey
from hfreg.kernels.languages import LANGUAGES, Recipe
from hfreg.kernels.signature_table import format_signature
from hfreg.kernels.targets import Target, target
from hfreg.kernels.toolchain import Tool, compile_c, link_shared, zig
from hfreg.ops.package import OpPackage, copy_package
from hfreg.resources import cache_home, root_folder

ELF_EXPORTS = ("hfreg_kernel", "hfreg_kernel_abi")
WASM_EXPORTS = (*ELF_EXPORTS, "hfreg_reserve", "hfreg_reset", "hfreg_host_context", "hfreg_host_message")
RUNTIME_EXPORTS = (
    "hfreg_runtime_abi",
    "hfreg_call_context_size",
    "hfreg_call_context_init",
    "hfreg_pool_create",
    "hfreg_pool_destroy",
)
RECIPE = (
    *(f"kernels/{name}.py" for name in ("artifact", "build", "conditions", "signature_table", "targets", "toolchain")),
    *("kernels/languages", "kernels/schedules", "lang", "arrays.py", "dtypes.py"),
    *(f"ops/{name}.py" for name in ("loading", "patterns", "signature")),
)
"""hfreg's own modules that decide the bytes of a kernel. What others read of a package is in the action itself."""
_SOURCE = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, slots=True)
class Failed:
    """A kernel that could not be built."""

    key: KernelKey
    error: BuildError


def build_tools(languages: Sequence[str]) -> list[Tool]:
    """The programs and libraries that a build with these languages uses."""
    tools = [zig(), *(tool for name in languages for tool in LANGUAGES[name].tools())]
    return sorted(set(tools), key=lambda tool: tool.name)


@cache
def recipe_digest() -> str:
    """The digest of hfreg's own part in a build.

    The semantics language, the schedules, the front end, the toolchain, element types, and the targets' descriptions.
    """
    return tree_digest(
        source_files(*RECIPE)
        | {
            f"root/{path.relative_to(root_folder('kernels')).as_posix()}": path.read_bytes()
            for path in sorted(root_folder("kernels").rglob("*"))
            if path.suffix in (".c", ".h", ".toml")
        }
    )


def source_files(*names: str) -> dict[str, bytes]:
    """The Python files of hfreg's own modules and packages, by their path."""
    paths = [
        path
        for name in names
        for path in ([_SOURCE / name] if name.endswith(".py") else (_SOURCE / name).rglob("*.py"))
    ]
    return {path.relative_to(_SOURCE).as_posix(): path.read_bytes() for path in sorted(paths)}


def action_digest(package: OpPackage, key: KernelKey, *, use_class_schedule: bool = False) -> str:
    """What a build is named by."""
    return json_digest(
        {
            "step": "build",
            "package": package.build_digest,
            "kernel": key.as_json(),
            "recipe": recipe_digest(),
            "tools": {tool.name: tool.digest for tool in build_tools([key.language])},
            "useClassSchedule": use_class_schedule,
        }
    )


def build_kernel(package: OpPackage, key: KernelKey, *, use_class_schedule: bool = False) -> Kernel:
    """Build one kernel twice and compare, or take the result of an equal earlier build.

    Raises:
        BuildError: it does not compile, or the two builds differ.
    """
    folder = cache_home() / "kernels"
    action = action_digest(package, key, use_class_schedule=use_class_schedule)
    stored = folder / f"{short(action)}{action[-20:]}"
    if (kernel := _read_stored(stored, key)) is not None:
        return kernel
    started = time.monotonic()
    first, second = (
        _build_once(package, key, hash_seed=seed, use_class_schedule=use_class_schedule) for seed in (1, 2)
    )
    if first.content != second.content:
        raise BuildError(
            f"two builds differ: {short(first.digest)} and {short(second.digest)}",
            where=key.slug,
            hint="something in the package depends on time, paths, addresses or the order of a set",
        )
    kernel = Kernel(key, first.content, first.notes | {"buildSeconds": round(time.monotonic() - started, 3)})
    folder.mkdir(parents=True, exist_ok=True)
    write_atomic(stored.with_suffix(".json"), json.dumps({"digest": kernel.digest, "notes": kernel.notes}).encode())
    write_atomic(stored.with_suffix(".bin"), kernel.content)
    return kernel


def _read_stored(stored: Path, key: KernelKey) -> Kernel | None:
    """A stored kernel whose bytes still have their digest."""
    try:
        note = json.loads(stored.with_suffix(".json").read_bytes())
        kernel = Kernel(key, stored.with_suffix(".bin").read_bytes(), note["notes"])
    except (OSError, ValueError, KeyError):
        return None
    return kernel if kernel.digest == note["digest"] else None


def _build_once(package: OpPackage, key: KernelKey, *, hash_seed: int, use_class_schedule: bool) -> Kernel:
    goal = target(key.target)
    signature = package.signature(key.attribute_class)
    with tempfile.TemporaryDirectory(prefix="hfreg-build-") as name:
        folder = Path(name) / ("x" * hash_seed)  # not even the lengths of the paths are the same
        copy_package(package.build_files, folder / "package")
        workspace = folder / "work"
        workspace.mkdir()
        recipe = Recipe(
            key, package.manifest, signature, goal, folder / "package", workspace, hash_seed, use_class_schedule
        )
        compiled = LANGUAGES[key.language].compile(recipe)
        table = workspace / "signature.c"
        table.write_text(format_signature(signature, key.dtypes))
        compile_c(table, workspace / "signature.o", goal, flags=["-I", str(_runtime_folder())])
        is_wasm = goal.build is not None and goal.build.format == "wasm"
        common = ("frontend.c", "memory.c", *(("wasm_host.c",) if is_wasm else ()))
        objects = [*compiled.objects, workspace / "signature.o"]
        objects += [runtime_object(name, goal) for name in (*common, *compiled.runtime)]
        output = workspace / "kernel.bin"
        try:
            link_shared(objects, output, goal, exports=WASM_EXPORTS if is_wasm else ELF_EXPORTS, closed=True)
        except BuildError as error:
            raise BuildError(error.message, where=key.slug) from error
        return Kernel(key, output.read_bytes(), compiled.notes)


def _runtime_folder() -> Path:
    return root_folder("kernels") / "runtime"


def runtime_object(name: str, goal: Target) -> Path:
    """The object of a file of `kernels/runtime/`, compiled twice for each target and state of hfreg and of zig.

    Raises:
        BuildError: it does not compile, or the two objects differ.
    """
    action = json_digest({"file": name, "recipe": recipe_digest(), "zig": zig().digest, "target": goal.name})
    stored = cache_home() / "runtime" / f"{name}-{short(action)}.o"
    if not (stored.is_file() and stored.with_suffix(".sha256").read_text() == sha256(stored.read_bytes())):
        flags = ("-fno-builtin",) if name == "memory.c" else ()
        with tempfile.TemporaryDirectory(prefix="hfreg-build-") as folder:
            objects = [Path(folder) / f"{number}.o" for number in (1, 2)]
            for path in objects:
                compile_c(_runtime_folder() / name, path, goal, flags=flags)
            content, again = (path.read_bytes() for path in objects)
        if content != again:
            raise BuildError("two builds differ", where=f"kernels/runtime/{name} for {goal.name}")
        stored.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(stored.with_suffix(".sha256"), sha256(content).encode())
        write_atomic(stored, content)
    return stored


def build_runtime(goal: Target) -> bytes:
    """The host runtime (`pool.c`): the one shared object that owns threads and memory for all kernels of a process.

    Raises:
        BuildError: it does not compile.
    """
    return _link_runtime(["pool.c"], goal, exports=RUNTIME_EXPORTS, closed=False)


def build_peaks(goal: Target) -> bytes:
    """The loops that measure what a machine can do (`peaks.c`).

    Raises:
        BuildError: it does not compile.
    """
    return _link_runtime(["peaks.c", "memory.c"], goal, exports=("hfreg_peak_fma", "hfreg_peak_stream"), closed=True)


def _link_runtime(names: Sequence[str], goal: Target, *, exports: Sequence[str], closed: bool) -> bytes:
    with tempfile.TemporaryDirectory(prefix="hfreg-build-") as folder:
        output = Path(folder) / "runtime.so"
        link_shared([runtime_object(name, goal) for name in names], output, goal, exports=exports, closed=closed)
        return output.read_bytes()


def build_all(
    package: OpPackage,
    keys: Sequence[KernelKey],
    *,
    jobs: int,
    progress: Callable[[str], None] = lambda _: None,
) -> list[Kernel | Failed]:
    """Build several kernels side by side, in the order of `keys`."""

    def build(key: KernelKey) -> Kernel | Failed:
        try:
            return build_kernel(package, key)
        except BuildError as error:
            return Failed(key, error)

    with ThreadPoolExecutor(jobs) as pool:
        futures = [pool.submit(build, key) for key in keys]
        for future in as_completed(futures):
            progress(future.result().key.slug)
        return [future.result() for future in futures]
