"""Op packages that do not exist, for tests: small, and each with what its tests need."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

from hfreg.ops.manifest import Manifest
from hfreg.ops.package import load_manifest

HEAD = """\
schema = 1
name = "{name}"
version = "{version}"
summary = "A sample"
license = "Apache-2.0"
maintainers = ["Nobody"]

[operator]
name = "{operator}"
since_versions = {since_versions}
"""

UNARY = """
[types]
T = ["float32", "float16"]

[inputs.x]
type = "T"
shape = "i..."

[outputs.y]
type = "T"
shape = "i..."

[accuracy]
bound = "E0"
"""

BROADCAST = """
[types]
T = ["float32", "int32"]

[inputs.a]
type = "T"
shape = "i..."

[inputs.b]
type = "T"
shape = "i..."

[inputs.c]
type = "T"
shape = "i..."
optional = true

[outputs.y]
type = "T"
shape = "i..."

[axes.i]
broadcast = true
rank = 2

[accuracy]
bound = "E1"
"""

MATMUL = """
[types]
T = ["float32", "bfloat16"]

[inputs.a]
type = "T"
shape = "batch... m? k"

[inputs.b]
type = "T"
shape = "batch... k n?"

[outputs.y]
type = "T"
shape = "batch... m? n?"

[axes.batch]
broadcast = true

[accuracy]
bound = "E4"
"""

SOFTMAX = """
[types]
T = ["float32"]

[inputs.x]
type = "T"
shape = "outer... n inner..."

[outputs.y]
type = "T"
shape = "outer... n inner..."

[attributes.axis]
type = "int"
default = -1
locates = "n"

[[classes]]
name = "last"
shapes = { x = "outer... n", y = "outer... n" }

[[classes]]
name = "inner"

[accuracy]
bound = "E5"
"""

CONV = """
[types]
T = ["float32"]

[inputs.x]
type = "T"
shape = "n (g c) h w"

[inputs.weights]
type = "T"
shape = "(g m) {c kh kw}"

[inputs.bias]
type = "T"
shape = "(g m)"
optional = true

[outputs.y]
type = "T"
shape = "n (g m) oh ow"

[axes.g]
attribute = "group"

[axes.kh]
attribute = "kernel_shape[0]"
minimum = 1

[axes.kw]
attribute = "kernel_shape[1]"
minimum = 1

[axes.oh]
window = { over = "h", size = "kh", position = 0 }

[axes.ow]
window = { over = "w", size = "kw", position = 1 }

[attributes.group]
type = "int"
default = 1
minimum = 1

[attributes.kernel_shape]
type = "ints"
length = 2
from_axes = ["kh", "kw"]

[attributes.strides]
type = "ints"
length = 2
default = [1, 1]
minimum = 1

[attributes.dilations]
type = "ints"
length = 2
default = [1, 1]
minimum = 1

[attributes.pads]
type = "ints"
length = 4
default = [0, 0, 0, 0]
minimum = 0

[attributes.auto_pad]
type = "string"
default = "NOTSET"
allowed = ["NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"]

[accuracy]
bound = "E4"
"""

POOL = """
[types]
T = ["float32"]

[inputs.x]
type = "T"
shape = "n c w"

[outputs.y]
type = "T"
shape = "n c ow"

[axes.kw]
attribute = "kernel_shape[0]"

[axes.ow]
window = { over = "w", size = "kw", position = 0 }

[attributes.kernel_shape]
type = "ints"
length = 1
minimum = 1

[attributes.strides]
type = "ints"
length = 1
default = [1]
minimum = 1

[attributes.dilations]
type = "ints"
length = 1
default = [1]
minimum = 1

[attributes.pads]
type = "ints"
length = 2
default = [0, 0]
minimum = 0

[attributes.ceil_mode]
type = "int"
default = 0
allowed = [0, 1]

[attributes.auto_pad]
type = "string"
default = "NOTSET"
allowed = ["NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"]

[accuracy]
bound = "E0"
"""


def manifest_text(
    body: str,
    *,
    name: str = "sample",
    version: str = "1.0.0",
    operator: str = "Sample",
    since_versions: tuple[int, ...] = (1, 13),
) -> str:
    """A whole `op.toml`."""
    return HEAD.format(name=name, version=version, operator=operator, since_versions=list(since_versions)) + body


def manifest(body: str, *, name: str = "sample", version: str = "1.0.0", operator: str = "Sample") -> Manifest:
    """A valid manifest."""
    return load_manifest(manifest_text(body, name=name, version=version, operator=operator), "op.toml")


def golden_files(operator: str = "Sample", *, folder: str = "golden/a") -> dict[str, bytes]:
    """A golden case of a unary operator, made with the `onnx` package alone."""
    x = np.array([-1.0, 0.0, 2.0], np.float32)
    infos = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [3]) for name in "xy"]
    graph = helper.make_graph([helper.make_node(operator, ["x"], ["y"])], "g", infos[:1], infos[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], doc_string="a calculation by hand")
    model.ir_version = 10
    return {
        f"{folder}/model.onnx": model.SerializeToString(),
        f"{folder}/test_data_set_0/input_0.pb": numpy_helper.from_array(x, "x").SerializeToString(),
        f"{folder}/test_data_set_0/output_0.pb": numpy_helper.from_array(np.maximum(x, 0), "y").SerializeToString(),
    }


def package_files(text: str | None = None, *, name: str = "sample", version: str = "1.0.0") -> dict[str, bytes]:
    """The files of a valid package of a unary operator."""
    text = manifest_text(UNARY, name=name, version=version) if text is None else text
    return {
        "op.toml": text.encode(),
        "reference.py": f"def {name}(x):\n    return x\n".encode(),
        "semantics.py": f"def {name}(x):\n    return x\n".encode(),
        "CHANGELOG.md": f"# Changelog\n\n## {version}\n\nFirst version.\n".encode(),
        **golden_files(),
    }


def write_files(root: Path, files: dict[str, bytes]) -> Path:
    """Write files below a folder; the folder."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return root
