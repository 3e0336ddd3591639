from __future__ import annotations

import json
import tomllib
from typing import Any

import jsonschema
import pytest
from pydantic import ValidationError

from hfreg.dtypes import DTYPES
from hfreg.errors import ManifestError
from hfreg.ops.manifest import Manifest, json_schema
from hfreg.ops.package import load_manifest
from unit import samples

BODIES = {
    name: getattr(samples, name) for name in ("UNARY", "BROADCAST", "MATMUL", "SOFTMAX", "CONV", "POOL")
}  # fmt: skip


def values(body: str = samples.UNARY) -> dict[str, Any]:
    return tomllib.loads(samples.manifest_text(body))


@pytest.mark.parametrize("name", BODIES)
def test_a_manifest_says_what_its_toml_says(name: str) -> None:
    made = samples.manifest(BODIES[name])
    assert json.loads(made.model_dump_json(by_alias=True, exclude_unset=True)) == values(BODIES[name])


def test_what_a_manifest_leaves_out_has_its_documented_default() -> None:
    made = samples.manifest(samples.UNARY)
    assert made.operator.domain == ""
    assert [entry.name for entry in made.classes] == ["general"]
    assert made.determinism.grade == "R1"
    assert made.accuracy.signed_zero is True
    x = made.inputs["x"]
    assert (x.optional, x.default, x.values) == (False, 0.0, "any")
    assert list(made.tensors) == ["x", "y"]
    assert made.reference == "sample@1.0.0"


def test_a_manifest_does_not_change() -> None:
    with pytest.raises(ValidationError):
        samples.manifest(samples.UNARY).name = "other"  # type: ignore[misc]


def with_change(path: str, value: object) -> dict[str, Any]:
    """The values of a valid manifest, one of them changed: `inputs.x.type`."""
    changed = values()
    *parents, last = path.split(".")
    place = changed
    for key in parents:
        place = place.setdefault(key, {})
    if value is None:
        del place[last]
    else:
        place[last] = value
    return changed


WRONG = [
    ("schema", 2),
    ("schema", "1"),
    ("schema", None),
    ("name", "Relu"),
    ("name", "re-lu"),
    ("name", "relu_"),
    ("name", None),
    ("version", "1.0"),
    ("version", 1),
    ("summary", ""),
    ("summary", "x" * 121),
    ("license", ""),
    ("maintainers", []),
    ("maintainers", "me"),
    ("operator.name", ""),
    ("operator.since_versions", []),
    ("operator.since_versions", [0]),
    ("operator.since_versions", ["13"]),
    ("operator.since_versions", [True]),
    ("types.T", []),
    ("inputs", {}),
    ("inputs.X", {"type": "T", "shape": "i..."}),
    ("inputs.x.type", None),
    ("inputs.x.shape", 3),
    ("inputs.x.optional", 1),
    ("inputs.x.values", "negative"),
    ("outputs", {}),
    ("outputs", {name: {"type": "T", "shape": "i..."} for name in "abc"}),
    ("inputs", {f"x{n}": {"type": "T", "shape": "i..."} for n in range(7)}),
    ("axes.i", {"rank": 0}),
    ("axes.i", {"rank": 5}),
    ("axes.i", {"minimum": -1}),
    ("attributes.a", {"type": "bool"}),
    ("attributes.a", {}),
    ("attributes.a", {"type": "ints", "length": 0}),
    ("classes", [{"name": "Last"}]),
    ("classes", [{}]),
    ("accuracy.bound", "E6"),
    ("accuracy", None),
    ("determinism.grade", "R3"),
    ("workloads", [{"name": "a b", "shapes": {"x": [1]}, "reason": "r"}]),
    ("workloads", [{"name": "a", "shapes": {"x": [-1]}, "reason": "r"}]),
    ("workloads", [{"name": "a", "shapes": {"x": [1]}}]),
    ("languages.c", {"sources": []}),
    ("unknown", 1),
    ("operator.unknown", 1),
    ("inputs.x.unknown", 1),
    ("outputs.y.unknown", 1),
    ("accuracy.unknown", 1),
    ("determinism.unknown", 1),
    ("attributes.a", {"type": "int", "unknown": 1}),
    ("axes.i", {"unknown": 1}),
    ("axes.i", {"window": {"over": "a", "size": "b", "position": 0, "unknown": 1}}),
    ("axes.i", {"window": {"over": "a", "size": "b", "position": -1}}),
]


@pytest.mark.parametrize(("path", "value"), WRONG, ids=lambda part: str(part)[:40])
def test_a_value_of_the_wrong_form_is_refused_by_the_model_and_by_the_published_schema(
    path: str, value: object
) -> None:
    changed = with_change(path, value)
    with pytest.raises(ValidationError):
        Manifest.model_validate(changed)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(changed, json_schema())


@pytest.mark.parametrize("name", BODIES)
def test_the_published_schema_is_one_and_accepts_valid_manifests(name: str) -> None:
    schema = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(values(BODIES[name]), schema)


def test_the_published_schema_describes_fields_and_lists_element_types() -> None:
    schema = json_schema()
    assert schema["properties"]["version"]["description"] == "SemVer. A published version never changes."
    assert schema["properties"]["types"]["additionalProperties"]["items"]["enum"] == list(DTYPES)
    assert schema["additionalProperties"] is False


@pytest.mark.parametrize(
    "version", ["01.0.0", "1.0.0-", "1.0.0-01", "1.0.0+", "1.0.0-a b", "1.0.0-../../x", "1.0.\u0663"]
)
def test_a_version_that_semver_does_not_have_is_refused(version: str) -> None:
    # "SemVer. A published version never changes": what is no SemVer version cannot be published or referred to.
    text = samples.manifest_text(samples.UNARY, version=version)
    with pytest.raises(ManifestError):
        load_manifest(text, "op.toml")


@pytest.mark.parametrize("version", ["0.0.0", "1.2.3", "10.20.30", "1.0.0-rc.1", "1.0.0+build.5", "1.0.0-a.b+c"])
def test_every_semver_version_is_accepted(version: str) -> None:
    assert samples.manifest(samples.UNARY, version=version).version == version
