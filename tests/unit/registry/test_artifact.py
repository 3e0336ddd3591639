from __future__ import annotations

import io
import json
import tarfile
from typing import Any

import pytest

from hfreg.errors import RegistryError
from hfreg.kernels.artifact import runtime_title
from hfreg.registry import media_types
from hfreg.registry.artifact import OperatorConfig, make_artifact, source_archive
from unit import publishing, signing
from unit.publishing import V3, V4
from unit.samples import package_files

PACKAGE = publishing.load()
ARTIFACT = publishing.artifact_of(PACKAGE, [V3, V4])


def names_in(data: bytes) -> list[str]:
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        return archive.getnames()


def test_an_artifact_has_source_golden_tests_kernels_and_runtimes_as_layers() -> None:
    layers = {descriptor.title: (descriptor.media_type, content) for descriptor, content in ARTIFACT.layers}
    kernels = [f"sample.{kind}.general.{target}.halide" for target in (V3, V4) for kind in ("float16", "float32")]
    assert sorted(layers) == sorted(
        ["source.tar", "golden.tar", *kernels, "runtime.x86_64-v3.so", "runtime.x86_64-v4.so"]
    )
    assert layers[kernels[0]] == ("application/vnd.hfreg.kernel.v1", b"kernel/sample/float16/x86_64-v3")
    assert layers["runtime.x86_64-v4.so"] == ("application/vnd.hfreg.runtime.v1", b"runtime of x86_64-v4")
    files = package_files()
    golden = sorted(name for name in files if name.startswith("golden/"))
    assert names_in(layers["golden.tar"][1]) == golden
    assert names_in(layers["source.tar"][1]) == sorted(set(files) - set(golden))
    assert source_archive(PACKAGE) == layers["source.tar"][1]
    assert runtime_title(V3) == "runtime.x86_64-v3.so"


def test_the_digests_of_the_layers_are_those_of_their_contents() -> None:
    for descriptor, content in ARTIFACT.layers:
        assert (descriptor.digest, descriptor.size) == (signing.digest(content), len(content))
    assert ARTIFACT.manifest.layers == tuple(descriptor for descriptor, _ in ARTIFACT.layers)
    assert ARTIFACT.manifest.config.digest == signing.digest(ARTIFACT.config.dump())
    assert ARTIFACT.manifest.annotations == {media_types.TITLE: "sample", media_types.VERSION: "1.0.0"}
    assert {signing.digest(content) for content in ARTIFACT.contents} == {
        *(descriptor.digest for descriptor, _ in ARTIFACT.layers),
        ARTIFACT.manifest.config.digest,
        signing.digest(ARTIFACT.manifest.dump()),
    }


def test_the_config_says_what_is_in_the_artifact() -> None:
    value = json.loads(ARTIFACT.config.dump())
    kernels = value.pop("kernels")
    assert value == {
        "name": "sample",
        "version": "1.0.0",
        "package": PACKAGE.digest,
        "manifest": package_files()["op.toml"].decode(),
        "runtimes": {target: signing.digest(b"runtime of " + target.encode()) for target in (V3, V4)},
    }
    assert kernels[0] == {
        "operator": "sample",
        "types": {"T": "float16"},
        "attributeClass": "general",
        "target": V3,
        "language": "halide",
        "digest": signing.digest(b"kernel/sample/float16/x86_64-v3"),
    }
    assert len(kernels) == 4


def test_the_order_in_which_kernels_were_built_does_not_matter() -> None:
    kernels = publishing.kernels_of(PACKAGE, V4, V3)
    runtimes = {V4: b"runtime of x86_64-v4", V3: b"runtime of x86_64-v3"}
    backwards = make_artifact(PACKAGE, kernels[::-1], runtimes)
    assert backwards.manifest.dump() == ARTIFACT.manifest.dump()
    assert backwards.contents == ARTIFACT.contents


@pytest.mark.parametrize(
    "other",
    [
        publishing.artifact_of(PACKAGE, [V3]),
        publishing.artifact_of(PACKAGE, [V3, V4], content=b"other"),
        publishing.artifact_of(publishing.load(version="1.0.1"), [V3, V4]),
        publishing.artifact_of(publishing.load(name="other"), [V3, V4]),
        publishing.artifact_of(publishing.load(extra={"notes.md": b""}), [V3, V4]),
        publishing.artifact_of(publishing.load(extra={"golden/a/test_data_set_0/input_9.pb": b""}), [V3, V4]),
        make_artifact(PACKAGE, publishing.kernels_of(PACKAGE, V3, V4), {}),
    ],
    ids=["targets", "kernels", "version", "name", "source", "golden tests", "runtimes"],
)
def test_whatever_differs_makes_another_artifact(other: Any) -> None:
    assert other.manifest.dump() != ARTIFACT.manifest.dump()


def test_a_config_is_read_as_it_was_written() -> None:
    assert OperatorConfig.parse(ARTIFACT.config.dump(), where="here") == ARTIFACT.config


CONFIG: dict[str, Any] = json.loads(ARTIFACT.config.dump())


def canonical(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def test_the_config_of_these_tests_is_in_canonical_form() -> None:
    assert canonical(CONFIG) == ARTIFACT.config.dump()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not the config of an operator"),
        (b"\xff", "not the config of an operator"),
        (b"[]", "not the config of an operator"),
        (b"3", "not the config of an operator"),
        *[(canonical({k: v for k, v in CONFIG.items() if k != name}), "not the config") for name in CONFIG],
        (canonical(CONFIG | {"kernels": 3}), "not the config of an operator"),
        (canonical(CONFIG | {"kernels": [{}]}), "not the config of an operator"),
        (canonical(CONFIG | {"kernels": [CONFIG["kernels"][0] | {"types": 3}]}), "not the config of an operator"),
        (canonical(CONFIG | {"runtimes": 3}), "not the config of an operator"),
        (canonical(CONFIG | {"runtimes": {V3: 3}}), "not the config of an operator"),
        *[(canonical(CONFIG | {name: 3}), "not the config") for name in ("name", "version", "package", "manifest")],
        (canonical(CONFIG | {"kernels": [CONFIG["kernels"][0] | {"digest": 3}]}), "not the config of an operator"),
        (canonical(CONFIG | {"kernels": [CONFIG["kernels"][0] | {"language": 3}]}), "not the config of an operator"),
        (canonical(CONFIG | {"kernels": [CONFIG["kernels"][0] | {"types": {"T": 3}}]}), "not the config of an"),
        (canonical(CONFIG | {"extra": 1}), "not in the one form"),
        (canonical(CONFIG | {"kernels": [CONFIG["kernels"][0] | {"extra": 1}]}), "not in the one form"),
        (json.dumps(CONFIG).encode(), "not in the one form"),
        (canonical(CONFIG)[:-1] + b',"version":"1.0.0"}', "not in the one form"),
    ],
)
def test_a_config_of_another_form_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(RegistryError, match=message) as caught:
        OperatorConfig.parse(data, where="here")
    assert caught.value.where == "here"


@pytest.mark.parametrize(
    "data",
    [
        canonical(CONFIG | {"name": float("nan")}),
        canonical(CONFIG).replace(b'"version":"1.0.0"', b'"version":"\\ud800"'),
        b"[" * 200_000,
    ],
    ids=["NaN", "half a character", "nested too deeply"],
)
def test_a_config_that_json_cannot_hold_is_refused_like_any_other(data: bytes) -> None:
    with pytest.raises(RegistryError):
        OperatorConfig.parse(data, where="here")
