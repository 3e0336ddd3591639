"""Golden tests: stored calls with their results, in the layout of the ONNX backend tests.

    golden/<case>/model.onnx                    one node; its doc string says where the case comes from
    golden/<case>/test_data_set_0/input_0.pb    ...
    golden/<case>/test_data_set_0/output_0.pb   ...

so that any ONNX runtime can run them. An absent optional input has an empty name in the node.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from hfreg.arrays import Array
from hfreg.dtypes import from_numpy
from hfreg.errors import ManifestError, Problem, RunError
from hfreg.ops.manifest import AttributeValue, Manifest
from hfreg.ops.signature import Attributes, complete_attributes

_PLACE = re.compile(r"golden/[^/]+/(model\.onnx|test_data_set_\d+/(input|output)_\d+\.pb)")


@dataclass(frozen=True)
class GoldenCase:
    """One stored call."""

    name: str
    inputs: tuple[Array | None, ...]
    outputs: tuple[Array, ...]
    attributes: Attributes
    source: str


def read_golden(files: Mapping[str, bytes], manifest: Manifest) -> Iterator[GoldenCase]:
    """The golden cases of a package.

    Args:
        files: the package's files by relative path.
        manifest: its manifest.

    Raises:
        ManifestError: a case cannot be read, or is no call of this operator.
    """
    for folder in golden_folders(files):
        yield from read_folder(files, manifest, folder)


def golden_folders(files: Collection[str]) -> list[str]:
    """The folders under `golden/`, each of one model and its data sets."""
    return sorted({name.split("/")[1] for name in files if name.startswith("golden/") and name.count("/") > 1})


def read_folder(files: Mapping[str, bytes], manifest: Manifest, folder: str) -> list[GoldenCase]:
    """The golden cases of one folder.

    Raises:
        ManifestError: a case cannot be read, or is no call of this operator.
    """
    where = f"{manifest.name}/golden/{folder}"
    try:
        model = onnx.load_model_from_string(files[f"golden/{folder}/model.onnx"])
        return list(_cases(files, manifest, folder, model))
    except KeyError as error:
        raise ManifestError([Problem(where, f"there is no {error.args[0]}")]) from error
    except ManifestError:
        raise
    except Exception as error:
        raise ManifestError([Problem(where, f"cannot be read: {error}")]) from error


def stray_files(files: Collection[str]) -> list[str]:
    """What is under `golden/` and belongs to no case."""
    return sorted(name for name in files if name.startswith("golden/") and not _PLACE.fullmatch(name))


def _cases(files: Mapping[str, bytes], manifest: Manifest, folder: str, model: onnx.ModelProto) -> Iterator[GoldenCase]:
    where = f"{manifest.name}/golden/{folder}"
    if len(model.graph.node) != 1:
        raise ManifestError([Problem(where, f"the model has {len(model.graph.node)} nodes, a golden test has one")])
    node = model.graph.node[0]
    if (node.domain, node.op_type) != (manifest.operator.domain, manifest.operator.name):
        expected = f"{manifest.operator.domain or 'ai.onnx'}::{manifest.operator.name}"
        raise ManifestError(
            [Problem(where, f"the node is {node.domain or 'ai.onnx'}::{node.op_type}, expected {expected}")]
        )
    given = {attribute.name: _plain(helper.get_attribute_value(attribute)) for attribute in node.attribute}
    try:
        attributes = complete_attributes(manifest, given)
    except RunError as error:
        raise ManifestError([Problem(where, str(error))]) from error
    fed = [value.name for value in model.graph.input]
    data_sets = sorted({name.split("/")[2] for name in files if name.startswith(f"golden/{folder}/test_data_set_")})
    if not data_sets:
        raise ManifestError([Problem(where, "holds no test_data_set_0")])
    for data_set in data_sets:
        base = f"golden/{folder}/{data_set}"
        stored = {name: _tensor(files[f"{base}/input_{i}.pb"]) for i, name in enumerate(fed)}
        inputs = tuple(stored[name] if name else None for name in node.input)
        padding = (None,) * (len(manifest.inputs) - len(inputs))
        outputs = tuple(_tensor(files[f"{base}/output_{i}.pb"]) for i in range(len(manifest.outputs)))
        suffix = data_set.removeprefix("test_data_set_")
        name = folder if suffix == "0" else f"{folder}-{suffix}"
        yield GoldenCase(name, inputs + padding, outputs, attributes, model.doc_string)


def _plain(value: Any) -> AttributeValue:
    if isinstance(value, bytes):
        return value.decode()
    return list(value) if isinstance(value, (list, tuple)) else value


def _tensor(content: bytes) -> Array:
    tensor = onnx.TensorProto.FromString(content)
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        raise ValueError("a tensor is kept in another file, which the package's digest need not cover")
    return np.asarray(numpy_helper.to_array(tensor))


def write_golden(
    folder: Path,
    manifest: Manifest,
    inputs: Sequence[Array | None],
    outputs: Sequence[Array],
    *,
    attributes: Mapping[str, AttributeValue],
    source: str,
) -> None:
    """Store a golden case.

    Args:
        folder: the folder of the case, `golden/<case>`.
        manifest: the package's manifest.
        inputs: the inputs in the manifest's order; None for an absent one.
        outputs: the right outputs.
        attributes: the attributes that the node gives.
        source: where the case comes from: a specification, an issue, a calculation.
    """
    names = [name if array is not None else "" for name, array in zip(manifest.inputs, inputs, strict=True)]
    while names and not names[-1]:
        names.pop()
    node = helper.make_node(
        manifest.operator.name, names, list(manifest.outputs), domain=manifest.operator.domain, **attributes
    )
    fed = {name: array for name, array in zip(manifest.inputs, inputs, strict=True) if array is not None}
    made = dict(zip(manifest.outputs, outputs, strict=True))
    graph = helper.make_graph([node], manifest.name, _value_infos(fed), _value_infos(made))
    opset = helper.make_opsetid(manifest.operator.domain, max(manifest.operator.since_versions))
    model = helper.make_model(graph, opset_imports=[opset], producer_name="hfreg", doc_string=source, ir_version=10)
    data = folder / "test_data_set_0"
    data.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(model.SerializeToString(deterministic=True))
    for kind, arrays in (("input", fed), ("output", made)):
        for position, (name, array) in enumerate(arrays.items()):
            proto = numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), name)
            (data / f"{kind}_{position}.pb").write_bytes(proto.SerializeToString(deterministic=True))


def _value_infos(arrays: Mapping[str, Array]) -> list[onnx.ValueInfoProto]:
    infos = []
    for name, array in arrays.items():
        dtype = from_numpy(array.dtype)
        if dtype is None:
            raise RunError(f"{array.dtype} is no element type of hfreg", where=name)
        infos.append(helper.make_tensor_value_info(name, dtype.onnx, array.shape))
    return infos
