from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hfreg.errors import RegistryError
from hfreg.registry import media_types
from hfreg.registry.oci import EMPTY_CONFIG, Descriptor, Manifest, dump_index, parse_canonical, parse_index

A, B = ("sha256:" + letter * 64 for letter in "ab")


def canonical(value: Any) -> bytes:
    """RFC 8785, for values of ASCII strings and small integers."""
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


LAYER = {"mediaType": "application/x", "digest": A, "size": 3, "annotations": {media_types.TITLE: "a"}}
CONFIG = {"mediaType": "application/y", "digest": B, "size": 2}
MANIFEST: dict[str, Any] = {
    "schemaVersion": 2,
    "mediaType": "application/vnd.oci.image.manifest.v1+json",
    "artifactType": "application/z",
    "config": CONFIG,
    "layers": [LAYER],
    "annotations": {"k": "v"},
}
INDEX: dict[str, Any] = {
    "schemaVersion": 2,
    "mediaType": "application/vnd.oci.image.index.v1+json",
    "manifests": [LAYER | {"artifactType": "application/z"}],
}


def test_the_empty_config_is_that_of_the_specification() -> None:
    # OCI image specification 1.1, "Guidance for an Empty Descriptor".
    assert Descriptor.of(EMPTY_CONFIG, media_types.EMPTY).as_json() == {
        "mediaType": "application/vnd.oci.empty.v1+json",
        "digest": "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a",
        "size": 2,
    }


@given(st.binary(max_size=30))
def test_a_descriptor_says_what_content_it_points_to(content: bytes) -> None:
    found = Descriptor.of(content, "application/x", annotations={"a": "b"})
    assert found.digest == "sha256:" + hashlib.sha256(content).hexdigest()
    assert found.size == len(content)
    assert found.as_json() == {
        "mediaType": "application/x",
        "digest": found.digest,
        "size": len(content),
        "annotations": {"a": "b"},
    }
    assert Descriptor.from_json(found.as_json(), where="here") == found


def test_the_title_is_an_annotation() -> None:
    assert Descriptor.from_json(LAYER, where="here").title == "a"
    assert Descriptor.from_json(CONFIG, where="here").title == ""


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "without mediaType, digest or size"),
        ([], "without mediaType, digest or size"),
        ({"mediaType": "x", "digest": A}, "without mediaType, digest or size"),
        ({"mediaType": "x", "size": 1}, "without mediaType, digest or size"),
        ({"digest": A, "size": 1}, "without mediaType, digest or size"),
        (CONFIG | {"urls": []}, r"unknown fields \['urls'\]"),
        (CONFIG | {"data": "e30="}, r"unknown fields \['data'\]"),
        (CONFIG | {"mediaType": 1}, "whose names are not strings"),
        (CONFIG | {"artifactType": None}, "whose names are not strings"),
        (CONFIG | {"annotations": []}, "whose names are not strings"),
        (CONFIG | {"annotations": {"a": 1}}, "whose names are not strings"),
        (CONFIG | {"digest": "sha512:" + "a" * 128}, "is not a SHA-256 digest"),
        (CONFIG | {"digest": "sha256:../../etc/passwd"}, "is not a SHA-256 digest"),
        (CONFIG | {"digest": 1}, "is not a SHA-256 digest"),
        (CONFIG | {"size": -1}, "-1 is not a size"),
        (CONFIG | {"size": "2"}, "'2' is not a size"),
        (CONFIG | {"size": 2.0}, "2.0 is not a size"),
        (CONFIG | {"size": True}, "True is not a size"),
        (CONFIG | {"size": None}, "None is not a size"),
    ],
    ids=range(19),
)
def test_a_descriptor_of_another_form_is_refused(value: Any, message: str) -> None:
    with pytest.raises(RegistryError, match=message) as caught:
        Descriptor.from_json(value, where="here")
    assert caught.value.where == "here"


@pytest.mark.parametrize("subject", [None, CONFIG])
def test_a_manifest_is_read_and_written_in_the_form_of_the_specification(subject: Any) -> None:
    data = canonical(MANIFEST | ({"subject": subject} if subject else {}))
    manifest = Manifest.parse(data, where="here")
    assert manifest.artifact_type == "application/z"
    assert manifest.config == Descriptor.from_json(CONFIG, where="here")
    assert manifest.layers == (Descriptor.from_json(LAYER, where="here"),)
    assert manifest.annotations == {"k": "v"}
    assert (manifest.subject is None) is (subject is None)
    assert manifest.dump() == data


def test_an_index_lists_a_manifest_with_its_annotations_and_its_name() -> None:
    data = canonical(MANIFEST)
    listed = Manifest.parse(data, where="here").descriptor(ref_name="a:1.0.0")
    assert listed.as_json() == {
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "digest": "sha256:" + hashlib.sha256(data).hexdigest(),
        "size": len(data),
        "artifactType": "application/z",
        "annotations": {"k": "v", "org.opencontainers.image.ref.name": "a:1.0.0"},
    }


def without(value: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: entry for key, entry in value.items() if key != name}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not valid JSON"),
        (b"[]", "not an artifact manifest"),
        (b"{}", "not an artifact manifest"),
        *[(canonical(without(MANIFEST, name)), "not an artifact manifest") for name in MANIFEST],
        (canonical(MANIFEST | {"extra": 1}), "not an artifact manifest"),
        (canonical(MANIFEST | {"schemaVersion": 1}), "not an OCI image manifest, version 2"),
        (
            canonical(MANIFEST | {"mediaType": "application/vnd.docker.distribution.manifest.v2+json"}),
            "not an OCI image",
        ),
        (canonical(MANIFEST | {"layers": {}}), "layers or annotations of the wrong form"),
        (canonical(MANIFEST | {"annotations": []}), "layers or annotations of the wrong form"),
        (canonical(MANIFEST | {"config": {}}), "a descriptor without"),
        (canonical(MANIFEST | {"layers": [{}]}), "a descriptor without"),
        (canonical(MANIFEST | {"subject": {}}), "a descriptor without"),
        (canonical(MANIFEST | {"subject": None}), "a descriptor without"),
        (json.dumps(MANIFEST, sort_keys=True).encode(), "not in canonical form"),
        (canonical(MANIFEST) + b"\n", "not in canonical form"),
        (canonical(MANIFEST)[:-1] + b',"layers":[]}', "the key 'layers' appears twice"),
    ],
)
def test_a_manifest_of_another_form_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(RegistryError, match=message) as caught:
        Manifest.parse(data, where="here")
    assert caught.value.where == "here"


@pytest.mark.parametrize(
    "change",
    [{"artifactType": 5}, {"artifactType": ["a"]}, {"annotations": {"k": 1}}, {"annotations": {"k": None}}],
    ids=str,
)
def test_the_names_in_a_manifest_are_strings(change: dict[str, Any]) -> None:
    # OCI image specification: artifactType is a string, annotations are a map from strings to strings.
    with pytest.raises(RegistryError):
        Manifest.parse(canonical(MANIFEST | change), where="here")


entries = st.lists(
    st.builds(
        Descriptor,
        st.just(media_types.MANIFEST),
        st.binary(min_size=32, max_size=32).map(lambda raw: "sha256:" + raw.hex()),
        st.integers(0, 999),
        st.sampled_from(["", "application/z"]),
        st.dictionaries(st.sampled_from([media_types.REF_NAME, "k"]), st.text("ab:1.~", max_size=3), max_size=2),
    ),
    max_size=4,
    unique_by=lambda entry: entry.digest,
)


@given(entries, st.randoms())
def test_an_index_has_one_form_whatever_the_order_of_its_entries(found: list[Descriptor], random: Any) -> None:
    data = dump_index(found)
    shuffled = list(found)
    random.shuffle(shuffled)
    assert dump_index(shuffled) == data
    parsed = parse_index(data, where="here")
    assert sorted(parsed, key=lambda entry: entry.digest) == sorted(found, key=lambda entry: entry.digest)
    assert dump_index(parsed) == data


def test_an_empty_index_is_written_as_the_specification_has_it() -> None:
    data = canonical(INDEX | {"manifests": []})
    assert dump_index(()) == data
    assert parse_index(data, where="here") == ()


ENTRIES = [LAYER | {"digest": A}, LAYER | {"digest": B}]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"null", "not an OCI image index of hfreg"),
        (canonical(INDEX | {"annotations": {}}), "not an OCI image index of hfreg"),
        (canonical(without(INDEX, "manifests")), "not an OCI image index of hfreg"),
        (canonical(INDEX | {"schemaVersion": 3}), "not an OCI image index, version 2"),
        (canonical(INDEX | {"mediaType": media_types.MANIFEST}), "not an OCI image index, version 2"),
        (canonical(INDEX | {"manifests": {}}), "not an OCI image index, version 2"),
        (canonical(INDEX | {"manifests": [1]}), "a descriptor without"),
        (canonical(INDEX | {"manifests": ENTRIES[::-1]}), "are not in order"),
        (canonical(INDEX | {"manifests": [LAYER, LAYER]}), "is there twice"),
        (canonical(INDEX).replace(b'"schemaVersion":2', b'"schemaVersion": 2'), "not in canonical form"),
        (b"\xff", "not UTF-8"),
    ],
)
def test_an_index_of_another_form_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(RegistryError, match=message) as caught:
        parse_index(data, where="here")
    assert caught.value.where == "here"


@pytest.mark.parametrize("data", [b"[1.0]", b"[1e2]", b'["\\u0041"]', b"[9007199254740993]", b'{"b":1,"a":1}', b"[1 ]"])
def test_json_written_in_another_way_is_not_canonical(data: bytes) -> None:
    with pytest.raises(RegistryError):
        parse_canonical(data, where="here")
