"""What hfreg writes is read by programs that know the specifications and nothing of hfreg.

DSSE v1.0 (secure-systems-lab/dsse), Sigstore bundle v0.3 (sigstore/protobuf-specs), in-toto Statement v1
(in-toto/attestation), SLSA provenance v1, OCI image layout and manifest 1.1 (opencontainers/image-spec).
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
import shutil
import subprocess
import tarfile
from datetime import datetime
from pathlib import Path
from typing import Any

import onnx
import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from integration.surface import hfreg_here, host

pytestmark = pytest.mark.build

Json = dict[str, Any]
IN_TOTO = "application/vnd.in-toto+json"


def blob(registry: Path, descriptor: Json) -> bytes:
    """A blob by its descriptor, checked as the image specification asks of every reader."""
    algorithm, _, encoded = descriptor["digest"].partition(":")
    content: bytes = (registry / "blobs" / str(algorithm) / str(encoded)).read_bytes()
    assert len(content) == descriptor["size"]
    assert hashlib.new(algorithm, content).hexdigest() == encoded
    return content


def manifests(registry: Path) -> list[tuple[Json, Json]]:
    """Descriptors and manifests of an image layout."""
    index = json.loads((registry / "index.json").read_bytes())
    return [(entry, json.loads(blob(registry, entry))) for entry in index["manifests"]]


def operator_of(registry: Path) -> tuple[Json, Json]:
    return next(pair for pair in manifests(registry) if "subject" not in pair[1])


def bundles(registry: Path) -> list[Json]:
    passports = [manifest for _, manifest in manifests(registry) if "subject" in manifest]
    return [json.loads(blob(registry, layer)) for passport in passports for layer in passport["layers"]]


def public_key(home: dict[str, str]) -> ec.EllipticCurvePublicKey:
    pem = (Path(home["XDG_CONFIG_HOME"]) / "hfreg" / "signing-key.pem").read_bytes()
    key = serialization.load_pem_private_key(pem, None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    return key.public_key()


def pae(kind: str, body: bytes) -> bytes:
    """DSSE's pre-authentication encoding."""
    return b" ".join([b"DSSEv1", str(len(kind)).encode(), kind.encode(), str(len(body)).encode(), body])


def test_the_layout_is_an_oci_image_layout(small: Path) -> None:
    assert json.loads((small / "oci-layout").read_bytes()) == {"imageLayoutVersion": "1.0.0"}
    index = json.loads((small / "index.json").read_bytes())
    assert index["schemaVersion"] == 2
    assert index["mediaType"] == "application/vnd.oci.image.index.v1+json"
    for path in (small / "blobs" / "sha256").iterdir():
        assert hashlib.sha256(path.read_bytes()).hexdigest() == path.name
    files = {path.relative_to(small).parts[0] for path in small.iterdir()}
    assert files - {"oci-layout", "index.json", "blobs"} <= {".hfreg-lock"}


def test_every_manifest_is_an_oci_manifest(small: Path) -> None:
    """The fields that image-spec 1.1 requires, and its rules for artifacts."""
    media_type = re.compile(r"[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,126}/[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,126}")
    found = manifests(small)
    assert len(found) == 3, "an operator and two passports"
    for entry, manifest in found:
        assert entry["mediaType"] == manifest["mediaType"] == "application/vnd.oci.image.manifest.v1+json"
        assert manifest["schemaVersion"] == 2
        assert entry["artifactType"] == manifest["artifactType"]
        assert manifest["layers"], "image-spec: at least one layer"
        for descriptor in (manifest["config"], *manifest["layers"]):
            assert {"mediaType", "digest", "size"} <= set(descriptor)
            assert media_type.fullmatch(descriptor["mediaType"])
            blob(small, descriptor)
        assert all(isinstance(value, str) for value in manifest["annotations"].values())
        if manifest["config"]["mediaType"] == "application/vnd.oci.empty.v1+json":
            assert blob(small, manifest["config"]) == b"{}"


def test_passports_are_referrers_of_the_operator(small: Path) -> None:
    entry, _ = operator_of(small)
    subjects = [manifest["subject"] for _, manifest in manifests(small) if "subject" in manifest]
    assert len(subjects) == 2
    for subject in subjects:
        assert {name: subject[name] for name in ("mediaType", "digest", "size")} == {
            name: entry[name] for name in ("mediaType", "digest", "size")
        }


def test_skopeo_reads_the_layout(small: Path) -> None:
    skopeo = shutil.which("skopeo")
    if skopeo is None:
        pytest.skip("needs skopeo")
    entry, manifest = operator_of(small)
    command = [skopeo, "inspect", "--raw", f"oci:{small}:relu:1.0.0"]
    raw = subprocess.run(command, capture_output=True, check=True).stdout
    assert json.loads(raw) == manifest
    assert hashlib.sha256(raw).hexdigest() == entry["digest"].removeprefix("sha256:")


def test_the_source_is_a_plain_tar_with_golden_tests_for_any_onnx_runtime(small: Path) -> None:
    _, manifest = operator_of(small)
    layers = {layer["annotations"]["org.opencontainers.image.title"]: layer for layer in manifest["layers"]}
    with tarfile.open(fileobj=io.BytesIO(blob(small, layers["source.tar"]))) as source:
        assert {"op.toml", "semantics.py", "reference.py", "CHANGELOG.md"} <= set(source.getnames())
    with tarfile.open(fileobj=io.BytesIO(blob(small, layers["golden.tar"]))) as golden:
        names = [name for name in golden.getnames() if name.endswith("model.onnx")]
        for name in names:
            member = golden.extractfile(name)
            assert member is not None
            onnx.checker.check_model(onnx.load_model_from_string(member.read()))
    assert names


def test_cryptography_alone_verifies_every_bundle(small: Path, home: dict[str, str]) -> None:
    key = public_key(home)
    der = key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    hint = base64.b64encode(hashlib.sha256(der).digest()).decode()
    found = bundles(small)
    assert len(found) == 4
    for bundle in found:
        assert bundle["mediaType"] == "application/vnd.dev.sigstore.bundle.v0.3+json"
        assert bundle["verificationMaterial"]["publicKey"]["hint"] == hint
        envelope = bundle["dsseEnvelope"]
        assert envelope["payloadType"] == IN_TOTO
        [signature] = envelope["signatures"]
        assert signature["keyid"] == hint
        signed = pae(IN_TOTO, base64.b64decode(envelope["payload"]))
        key.verify(base64.b64decode(signature["sig"]), signed, ec.ECDSA(hashes.SHA256()))
        with pytest.raises(InvalidSignature):
            key.verify(base64.b64decode(signature["sig"]), signed + b" ", ec.ECDSA(hashes.SHA256()))


def test_openssl_verifies_a_bundle(small: Path, home: dict[str, str], tmp_path: Path) -> None:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("needs openssl")
    envelope = bundles(small)[0]["dsseEnvelope"]
    pem = public_key(home).public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    (tmp_path / "key.pem").write_bytes(pem)
    (tmp_path / "signature").write_bytes(base64.b64decode(envelope["signatures"][0]["sig"]))
    (tmp_path / "signed").write_bytes(pae(IN_TOTO, base64.b64decode(envelope["payload"])))
    command = [openssl, "dgst", "-sha256", "-verify", "key.pem", "-signature", "signature", "signed"]
    assert "Verified OK" in subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout


def statements(registry: Path) -> list[Json]:
    return [json.loads(base64.b64decode(bundle["dsseEnvelope"]["payload"])) for bundle in bundles(registry)]


def test_the_statements_are_in_toto_v1_about_the_layers(small: Path) -> None:
    _, manifest = operator_of(small)
    layers = {
        layer["annotations"]["org.opencontainers.image.title"]: layer["digest"].removeprefix("sha256:")
        for layer in manifest["layers"]
    }
    for statement in statements(small):
        assert set(statement) == {"_type", "subject", "predicateType", "predicate"}
        assert statement["_type"] == "https://in-toto.io/Statement/v1"
        assert statement["subject"]
        for subject in statement["subject"]:
            assert subject["digest"] == {"sha256": layers[subject["name"]]}


def test_the_provenance_is_slsa_v1(small: Path) -> None:
    """The fields that SLSA provenance v1 requires, and their forms."""
    provenances = [s["predicate"] for s in statements(small) if s["predicateType"] == "https://slsa.dev/provenance/v1"]
    assert len(provenances) == 2
    for predicate in provenances:
        definition, details = predicate["buildDefinition"], predicate["runDetails"]
        assert re.match(r"https?://", definition["buildType"])
        assert isinstance(definition["externalParameters"], dict) and definition["externalParameters"]
        assert re.match(r"https?://", details["builder"]["id"])
        for dependency in definition["resolvedDependencies"]:
            assert dependency["uri"]
            assert re.fullmatch(r"[0-9a-f]{64}", dependency["digest"]["sha256"])
        started, finished = (
            datetime.strptime(details["metadata"][name], "%Y-%m-%dT%H:%M:%SZ") for name in ("startedOn", "finishedOn")
        )
        assert started <= finished


def test_the_verification_predicate_has_its_published_schema(small: Path) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    printed = hfreg_here("schema", "verification")
    assert printed.status == 0, str(printed)
    verifications = [s["predicate"] for s in statements(small) if "operator-verification" in s["predicateType"]]
    assert {predicate["target"]["name"] for predicate in verifications} == {host(), "wasm32-simd"}
    for predicate in verifications:
        jsonschema.validate(predicate, printed.json())
