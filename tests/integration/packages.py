"""Op packages for tests: a manifest, a reference, one golden case, and kernels in C or semantics."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from onnx import helper, numpy_helper

COPY = """\
schema = 1
name = "{name}"
version = "{version}"
summary = "Every element as it is"
license = "Apache-2.0"
maintainers = ["Nobody"]

[operator]
domain = "test"
name = "Copy"
since_versions = [1]

[types]
T = [{types}]

[inputs.x]
type = "T"
shape = "i..."

[outputs.y]
type = "T"
shape = "i..."

[accuracy]
bound = "E0"

[languages.c]
sources = ["kernel.c"]
"""

COPY_KERNEL = """\
#include "hfreg/body.h"

int32_t hfreg_body(hfreg_context *context, const hfreg_view *views, const hfreg_value *attributes) {
    const HFREG_T *x = views[0].data;
    HFREG_T *y = views[1].data;
    (void)context, (void)attributes;
    for (int64_t i = 0; i < views[1].extent[0]; i++) y[i] = x[i];
    return 0;
}
"""


def write(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write the files of a package; the folder."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


def golden(
    operator: str,
    inputs: Mapping[str, np.ndarray],
    output: np.ndarray,
    *,
    domain: str = "test",
    version: int = 1,
    **attributes: object,
) -> dict[str, bytes]:
    """One golden case in the ONNX backend-test layout, made with the `onnx` package alone."""
    tensors = {**inputs, "y": output}
    infos = {
        name: helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in tensors.items()
    }
    node = helper.make_node(operator, list(inputs), ["y"], domain=domain, **attributes)
    graph = helper.make_graph([node], "golden", [infos[name] for name in inputs], [infos["y"]])
    opsets = [helper.make_opsetid(name, number) for name, number in {domain: version, "": 20}.items()]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10, doc_string="worked out by hand")
    folder = "golden/by_hand"
    files = {f"{folder}/model.onnx": bytes(model.SerializeToString())}
    for number, (name, array) in enumerate(inputs.items()):
        tensor = numpy_helper.from_array(array, name)
        files[f"{folder}/test_data_set_0/input_{number}.pb"] = bytes(tensor.SerializeToString())
    tensor = numpy_helper.from_array(output, "y")
    files[f"{folder}/test_data_set_0/output_0.pb"] = bytes(tensor.SerializeToString())
    return files


def changelog(version: str = "1.0.0") -> str:
    return f"# Changelog\n\n## {version}\n\n- First version.\n"


def copy_package(
    folder: Path,
    *,
    version: str = "1.0.0",
    types: tuple[str, ...] = ("float32",),
    kernel: str = COPY_KERNEL,
) -> Path:
    """A package that copies its input, in C: what is built and evaluated soonest."""
    name = folder.name
    x = np.array([-1.0, 0.0, 2.5], np.float32)
    return write(
        folder,
        {
            "op.toml": COPY.format(name=name, version=version, types=", ".join(f'"{kind}"' for kind in types)),
            "reference.py": f"def {name}(x):\n    return x\n",
            "kernel.c": kernel,
            "CHANGELOG.md": changelog(version),
            **golden("Copy", {"x": x}, x),
        },
    )
