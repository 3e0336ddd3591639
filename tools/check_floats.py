"""Compare the functions of `floats.py` with float64 on every float32; needs scipy.

    python tools/check_floats.py [--function NAME] [--target NAME]

Each function is compiled alone, in vectors, for each target, and linked with nothing, so that a call of a math library
is an error. The x86-64 targets take all 2**32 inputs (two to six minutes a function); wasm32 runs in wasmtime, on every
997th, which is too few to find the largest error: `avx` has no FMA either, gives the same results, and takes them all.
A pair of values is one of 2**24 random pairs. Special values come first, and results there that are 0, 1, infinite or
NaN must be exactly so.

An error is in ULP: the distance from the reference, over the spacing of float32 at the correctly rounded result
(2**-149 where that is subnormal). An infinity counts as 2**128 where a finite result is right, so that rounding up to
it is judged like any other rounding; NaN or infinity out of place is an infinite error.
"""

import argparse
import ctypes
import dataclasses
import importlib
import itertools
import pathlib
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import halide as hl
import numpy as np
import numpy.typing as npt
import wasmtime
from scipy import special

Float32s = npt.NDArray[np.float32]
Float64s = npt.NDArray[np.float64]
Kernel = Callable[[Sequence[Float32s]], Float32s]
_BLOCK = 1 << 20
_PAIRS = 1 << 24
_PER_SPACING = np.ldexp(1.0, 150 - np.maximum(np.arange(256), 1))  # 1 / spacing, by exponent field
_SPECIAL = np.array([np.nan, np.inf, 3.4e38, 89, 2.5, 1.5, 1, 0.5, 1.2e-38, 1.1e-38, 1e-45, 0], np.float32)
_SPECIAL = np.concatenate([_SPECIAL, -_SPECIAL, np.array([0x7F800001, 0xFFFFFFFF], np.uint32).view(np.float32)])


@dataclasses.dataclass(frozen=True, slots=True)
class Target:
    halide: str
    lanes: int
    step: int = 1
    """Take every `step`-th float32."""


TARGETS = {
    "avx": Target("x86-64-linux-avx-sse41", 8),  # without FMA: with avx2, Halide uses FMA whether asked to or not
    "avx2": Target("x86-64-linux-avx-avx2-fma-f16c-sse41", 8),
    "avx512": Target("x86-64-linux-avx-avx2-fma-f16c-sse41-avx512-avx512_skylake", 16),
    "wasm": Target("wasm-32-wasmrt-wasm_simd128", 4, step=997),
}


@dataclasses.dataclass(frozen=True, slots=True)
class Function:
    reference: Callable[..., Float64s]
    limit: float
    """The largest error allowed, in ULP."""
    arity: int = 1
    high: float = np.inf
    """The domain is x <= `high`, and NaN."""
    is_odd: bool = False
    flushes: bool = False
    """Results below the smallest normal may be 0."""
    drift: float = 0.0
    """A relative error allowed besides, for each unit of |x|."""


FUNCTIONS = {
    "exp": Function(np.exp, 1.2),
    "exp_of_difference": Function(np.exp, 0.95, high=0.0, flushes=True, drift=2.0**-24),
    "log": Function(np.log, 1.2),
    "sigmoid": Function(special.expit, 2.7),
    "tanh": Function(np.tanh, 2.7, is_odd=True),
    "erf": Function(special.erf, 4.0, is_odd=True),
    "sqrt": Function(np.sqrt, 0.5),
    "abs": Function(np.abs, 0.0),
    "round_half_even": Function(np.rint, 0.0, is_odd=True),
    "maximum": Function(np.maximum, 0.0, arity=2),
    "minimum": Function(np.minimum, 0.0, arity=2),
}


def build(function: Callable[..., hl.Expr], arity: int, target: Target, folder: pathlib.Path) -> pathlib.Path:
    """A shared object or a wasm module whose `kernel` maps `function` over buffers. Leaves the assembly beside it."""
    i = hl.Var("i")
    operands = [hl.ImageParam(hl.Float(32), 1, f"x{n}") for n in range(arity)]
    y = hl.Func("y")
    y[i] = function(*(operand[i] for operand in operands))
    y.vectorize(i, target.lanes, hl.TailStrategy.RoundUp)
    for buffer in (*operands, y.output_buffer()):
        buffer.dim(0).set_min(0)
    base = str(folder / target.halide)
    y.compile_to(
        {hl.OutputFileType.object: base + ".o", hl.OutputFileType.assembly: base + ".s"},
        operands,
        "kernel",
        hl.Target(target.halide + "-no_runtime-no_asserts-no_bounds_query"),
    )
    options = (
        ["-target", "wasm32-freestanding", "-Wl,--no-entry,--export=kernel,--export=__heap_base"]
        if target.halide.startswith("wasm")
        else ["-shared", "-Wl,-z,defs"]
    )
    subprocess.run([sys.executable, "-m", "ziglang", "cc", "-nostdlib", *options, "-o", base, base + ".o"], check=True)
    return pathlib.Path(base)


class _Buffer(ctypes.Structure):
    """`halide_buffer_t` of a one-dimensional float32 array, on a 64-bit host."""

    _fields_ = [
        ("device", ctypes.c_uint64),
        ("interface", ctypes.c_void_p),
        ("host", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("type", ctypes.c_uint8 * 4),
        ("dimensions", ctypes.c_int32),
        ("dim", ctypes.c_void_p),
        ("padding", ctypes.c_void_p),
        ("dim_0", ctypes.c_int32 * 4),
    ]

    @classmethod
    def of(cls, array: Float32s) -> "_Buffer":
        buffer = cls(host=array.ctypes.data, type=(2, 32, 1, 0), dimensions=1, dim_0=(0, array.size, 1, 0))
        buffer.dim = ctypes.addressof(buffer) + cls.dim_0.offset
        return buffer


def load_native(library: pathlib.Path) -> Kernel:
    kernel = ctypes.CDLL(str(library)).kernel

    def call(operands: Sequence[Float32s]) -> Float32s:
        y = np.empty_like(operands[0])
        kernel(*(ctypes.byref(_Buffer.of(array)) for array in (*operands, y)))
        return y

    return call


def load_wasm(library: pathlib.Path) -> Kernel:
    store = wasmtime.Store()
    module = wasmtime.Module.from_file(store.engine, str(library))
    exports: Any = wasmtime.Instance(store, module, []).exports(store)
    memory, base = exports["memory"], -(-exports["__heap_base"].value(store) // 64) * 64

    def call(operands: Sequence[Float32s]) -> Float32s:
        size, count = operands[0].size, len(operands) + 1
        headers, data = [base + 64 * n for n in range(count)], [base + 64 * count + 4 * size * n for n in range(count)]
        memory.grow(store, max(0, -(-(data[-1] + 4 * size - memory.data_len(store)) // 65536)))
        for header, host in zip(headers, data, strict=True):
            fields = (0, 0, host, 0, 2, 32, 1, 1, header + 40, 0, 0, size, 1, 0)
            memory.write(store, struct.pack("<QIIQBBHiIIiiii", *fields), header)
        for host, operand in zip(data[:-1], operands, strict=True):
            memory.write(store, operand.tobytes(), host)
        exports["kernel"](store, *headers)
        return np.frombuffer(memory.read(store, data[-1], data[-1] + 4 * size), np.float32)

    return call


def ulp_errors(y: Float32s, reference: Float64s) -> Float64s:
    rounded = reference.astype(np.float32)
    field = rounded.view(np.uint32) >> np.uint32(23) & np.uint32(255)
    errors: Float64s = np.abs(np.clip(y.astype(np.float64), -(2.0**128), 2.0**128) - reference) * _PER_SPACING[field]
    unusual = (field == 255) | np.isnan(y)
    if unusual.any():
        same = (y == rounded) | np.isnan(y) & np.isnan(rounded)
        errors[unusual] = np.where(same[unusual], 0.0, np.inf)
    return errors


def errors_of(function: Function, operands: Sequence[Float32s], y: Float32s, reference: Float64s) -> Float64s:
    """ULP errors, 0 outside the domain."""
    errors = ulp_errors(y, reference)
    if function.drift:
        spacings = _PER_SPACING[reference.astype(np.float32).view(np.uint32) >> np.uint32(23) & np.uint32(255)]
        errors -= np.nan_to_num(function.drift * np.abs(operands[0].astype(np.float64)) * reference * spacings)
    if function.is_odd:
        errors[(np.signbit(y) != np.signbit(operands[0])) & ~np.isnan(y)] = np.inf
    if function.flushes:
        errors[(reference < 2.0**-126) & (y == 0)] = 0.0
    errors[operands[0] > function.high] = 0.0
    return errors


def special_operands(arity: int) -> list[Float32s]:
    rows = np.array(list(itertools.product(_SPECIAL, repeat=arity)), np.float32).T
    return [np.pad(row, (0, -row.size % 64), mode="edge") for row in rows]


def all_operands(arity: int, step: int) -> Iterator[list[Float32s]]:
    """Blocks of every `step`-th float32, or of random pairs."""
    if arity == 1:
        for start in range(0, 1 << 32, _BLOCK * step):
            bits = np.arange(start, min(start + _BLOCK * step, 1 << 32), step, dtype=np.uint64).astype(np.uint32)
            yield [np.pad(bits, (0, -bits.size % 64), mode="edge").view(np.float32)]
    else:
        generator = np.random.default_rng(0)
        for _ in range(_PAIRS // _BLOCK):
            yield [generator.integers(0, 1 << 32, _BLOCK, np.uint32).view(np.float32) for _ in range(arity)]


def check_special(label: str, function: Function, kernel: Kernel) -> bool:
    operands = special_operands(function.arity)
    y = kernel(operands)
    reference = function.reference(*(operand.astype(np.float64) for operand in operands))
    rounded = reference.astype(np.float32)
    errors = errors_of(function, operands, y, reference)
    is_wrong = (errors > function.limit) | np.isin(rounded, [0, 1, -1]) & (y != rounded) & (errors > 0)
    if function.arity == 1:
        print(
            f"{label} special: "
            + ", ".join(
                f"{x:.5g} -> {v:.6g}"
                for x, v in zip(_SPECIAL, y[: _SPECIAL.size], strict=True)
                if not x > function.high
            )
        )
    for i in np.flatnonzero(is_wrong):
        print(f"{label} WRONG: {[operand[i] for operand in operands]} -> {y[i]!r}, not {rounded[i]!r}")
    return not is_wrong.any()


def check_all(name: str, function: Function, kernels: dict[str, Kernel], step: int) -> bool:
    """Targets that take the same inputs share the reference."""
    worst: dict[str, tuple[float, list[np.float32]]] = {key: (-1.0, []) for key in kernels}
    began = time.perf_counter()
    for operands in all_operands(function.arity, step):
        reference = function.reference(*(operand.astype(np.float64) for operand in operands))
        for key, kernel in kernels.items():
            errors = errors_of(function, operands, kernel(operands), reference)
            i = int(np.argmax(errors))
            worst[key] = max(worst[key], (float(errors[i]), [operand[i] for operand in operands]), key=lambda w: w[0])
    for key, (error, where) in worst.items():
        verdict = "" if error <= function.limit else f"  ABOVE the limit of {function.limit}"
        print(
            f"{name} {key}: at most {error:.3f} ULP, at {', '.join(f'{x:.9g}' for x in where)}"
            f"  ({time.perf_counter() - began:.0f} s){verdict}",
            flush=True,
        )
    return all(error <= function.limit for error, _ in worst.values())


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--function", choices=FUNCTIONS, action="append")
    parser.add_argument("--target", choices=TARGETS, action="append")
    parser.add_argument("--step", type=int, default=1, help="take every STEP-th float32 at most")
    parser.add_argument("--module", default="hfreg.lang.floats", help="the module to check")
    arguments = parser.parse_args()
    floats = importlib.import_module(arguments.module)
    is_right = True
    for name in arguments.function or FUNCTIONS:
        function = FUNCTIONS[name]
        with tempfile.TemporaryDirectory() as folder, np.errstate(all="ignore"):
            by_step: dict[int, dict[str, Kernel]] = {}
            for key in arguments.target or TARGETS:
                target = TARGETS[key]
                library = build(getattr(floats, name), function.arity, target, pathlib.Path(folder))
                kernel = (load_wasm if key == "wasm" else load_native)(library)
                is_right &= check_special(f"{name} {key}", function, kernel)
                by_step.setdefault(max(target.step, arguments.step), {})[key] = kernel
            for step, kernels in by_step.items():
                is_right &= check_all(name, function, kernels, step)
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
