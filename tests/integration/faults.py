"""A package whose kernels are each wrong in one way: one attribute class for each fault.

The fault shows for inputs of 129 elements only, so that the runner has good calls before it and after it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from integration.packages import changelog, golden, write

NAME = "faulty"


@dataclass(frozen=True)
class Fault:
    """What a kernel does wrong, and what has to be said about it."""

    code: str
    """C statements after the output was written; x, y and n are at hand. What leaves the last element out has none."""
    verdict: str
    detail: str
    """A regular expression."""


FAULTS = {
    "segfault": Fault("*(volatile int *)16 = 1;", "crashed", r"SIGSEGV"),
    "abort": Fault("system_call(62, system_call(39, 0, 0), 6);", "crashed", r"SIGABRT"),
    "trap": Fault("__builtin_trap();", "crashed", r"SIGILL|SIGTRAP"),
    "leave": Fault("system_call(231, 0, 0);", "crashed", r"exit status 0"),
    "hang": Fault('for (;;) __asm__ volatile("");', "timed_out", r"no answer after 20 s"),
    "behind": Fault("y[n] = 1;", "out_of_bounds_write", r"y: a write \d+ bytes? behind its memory"),
    "before": Fault("y[-1] = 1;", "out_of_bounds_write", r"y: a write \d+ bytes? before its memory"),
    "input_behind": Fault("((HFREG_T *)x)[n] = 1;", "out_of_bounds_write", r"x: a write \d+ bytes? behind its memory"),
    "unwritten": Fault("", "unwritten_output", r"y: 1 of 129 elements were never written, first \[128\]"),
    "input": Fault(
        "((HFREG_T *)x)[3] += 1;", "input_modified", r"x: the kernel wrote to this input, first at byte 1[2-5]"
    ),
    "wrong": Fault("y[5] = x[5] + 1;", "wrong_result", r"y at \[5\]: \S+, expected exactly"),
    "moody": Fault("static int calls; if (calls++) y[7] = x[7] + 1;", "not_repeatable", r"gave different bits"),
    "error": Fault('context->report(context, "no such luck"); return 3;', "reported_error", r"no such luck"),
    "greedy": Fault(
        'while (context->allocate(context, 1u << 30)) {} context->report(context, "memory ran out"); return 1;',
        "reported_error",
        r"memory ran out",
    ),
    "chatter": Fault(
        'for (long f = 3; f < 64; f++) system_call(1, f, (long)"thirty-two bytes of plain noise.");',
        "crashed",
        r"the runner's answer is none: .* no message",
    ),
    "imports": Fault("exit(0);", "not_built", r"exit"),
    "none": Fault("", "passed", r""),
}
"""By attribute class. The last one is right: the service goes on after the others."""

NATIVE_ONLY = {"segfault", "abort", "leave", "chatter"}
"""What a WebAssembly module cannot do: it has no system to call, and every address in its memory is valid."""

_MANIFEST = """\
schema = 1
name = "faulty"
version = "1.0.0"
summary = "Every element as it is, with one fault"
license = "Apache-2.0"
maintainers = ["Nobody"]

[operator]
domain = "test"
name = "Faulty"
since_versions = [1]

[types]
T = ["float32"]

[inputs.x]
type = "T"
shape = "i..."

[outputs.y]
type = "T"
shape = "i..."

[attributes.fault]
type = "string"
default = "none"

[accuracy]
bound = "E0"

[languages.c]
sources = ["kernel.c"]
"""

_KERNEL = """\
#include "hfreg/body.h"

/* The kernel links with nothing, so it calls the system itself (x86-64 Linux). A third argument is always 32. */
__attribute__((unused)) static long system_call(long number, long a, long b) {{
    long result = number + a + b;
#ifdef __x86_64__
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(32L) : "rcx", "r11", "memory");
#endif
    return result;
}}

void exit(int);

int32_t hfreg_body(hfreg_context *context, const hfreg_view *views, const hfreg_value *attributes) {{
    const HFREG_T *x = views[0].data;
    HFREG_T *y = views[1].data;
    int64_t n = views[1].extent[0], written = n;
    (void)context, (void)attributes;
#ifdef HFREG_CLASS_unwritten
    written -= n == 129;
#endif
    for (int64_t i = 0; i < written; i++) y[i] = x[i];
    if (n == 129) {{
{branches}
    }}
    return 0;
}}
"""


def write_package(folder: Path) -> Path:
    """Write the package; the folder."""
    classes = "".join(f'\n[[classes]]\nname = "{name}"\nattributes = {{ fault = "{name}" }}\n' for name in FAULTS)
    branches = "\n".join(
        f"#ifdef HFREG_CLASS_{name}\n        {fault.code}\n#endif" for name, fault in FAULTS.items() if fault.code
    )
    x = np.array([-1.0, 0.0, 2.5], np.float32)
    return write(
        folder,
        {
            "op.toml": _MANIFEST + classes,
            "reference.py": "def faulty(x):\n    return x\n",
            "kernel.c": _KERNEL.format(branches=branches),
            "CHANGELOG.md": changelog(),
            **golden("Faulty", {"x": x}, x),
        },
    )
