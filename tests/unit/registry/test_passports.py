from __future__ import annotations

import base64
import json
from dataclasses import replace
from pathlib import Path

import pytest

from hfreg.errors import VerificationError
from hfreg.passports.keys import PublicKey, TrustedKeys
from hfreg.registry.artifact import OperatorArtifact, make_artifact
from hfreg.registry.passports import artifacts_of, verified_passports, verify_version
from hfreg.registry.registry import OpVersion, PassportBundles, Registry
from hfreg.versions import Reference
from unit import publishing, signing
from unit.publishing import V3, V4
from unit.signing import PUBLISHER, STRANGER, TRUSTED

PACKAGE = publishing.load()
ARTIFACT = publishing.artifact_of(PACKAGE, [V3, V4])
PASSPORTS = publishing.passports_of(ARTIFACT)


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    return Registry(tmp_path)


def published(registry: Registry, passports: list[PassportBundles], artifact: OperatorArtifact = ARTIFACT) -> OpVersion:
    registry.publish(artifact, passports)
    return registry.resolve(Reference(artifact.config.name))


def refused(version: OpVersion, message: str, trusted: TrustedKeys = TRUSTED) -> None:
    for verify in (verified_passports, verify_version):
        with pytest.raises(VerificationError, match=message):
            verify(version, trusted)


def test_a_version_with_a_passport_for_each_target_verifies(registry: Registry) -> None:
    version = published(registry, PASSPORTS)
    for verify in (verified_passports, verify_version):
        passports = verify(version, TRUSTED)
        assert [passport.target for passport in passports] == [V3, V4]
        assert {passport.reference for passport in passports} == {"sample@1.0.0"}
        assert all(passport.is_self_attested for passport in passports)


def test_the_artifacts_of_a_target_are_its_kernels_its_runtime_and_the_source(registry: Registry) -> None:
    version = published(registry, PASSPORTS)
    layers = {descriptor.title: signing.digest(content) for descriptor, content in ARTIFACT.layers}
    expected = {name: value for name, value in layers.items() if V3 in name} | {"source.tar": layers["source.tar"]}
    assert artifacts_of(version, V3) == expected
    assert len(expected) == 4
    assert artifacts_of(version, "elsewhere") == {"source.tar": layers["source.tar"]}


def test_a_target_without_a_host_runtime_needs_none(registry: Registry) -> None:
    artifact = make_artifact(PACKAGE, publishing.kernels_of(PACKAGE, V3), {})
    assert "runtime" not in " ".join(artifacts_of(published(registry, [], artifact), V3))


def test_a_target_with_kernels_and_no_passport_is_refused(registry: Registry) -> None:
    refused(published(registry, PASSPORTS[:1]), f"there are artifacts for {V4}, but no passport")


@pytest.mark.parametrize(("field", "value"), [("domain", "com.example"), ("operator", "Other"), ("sinceVersions", [1])])
def test_a_passport_of_another_operator_is_refused(registry: Registry, field: str, value: object) -> None:
    provenance, verification = PASSPORTS[0].bundles
    said = json.loads(base64.b64decode(json.loads(verification)["dsseEnvelope"]["payload"]))
    said["predicate"]["operator"][field] = value
    changed = replace(PASSPORTS[0], bundles=(provenance, signing.signed(said)))
    refused(published(registry, [changed, PASSPORTS[1]]), "the verification's .* is .*, expected")


def test_a_runtime_that_nobody_vouches_for_is_refused(registry: Registry) -> None:
    runtimes = {target: b"runtime of " + target.encode() for target in (V3, V4)}
    artifact = make_artifact(PACKAGE, publishing.kernels_of(PACKAGE, V3), runtimes)
    refused(published(registry, PASSPORTS[:1], artifact), f"there are artifacts for {V4}, but no passport")


def test_a_version_that_nobody_vouches_for_is_refused(registry: Registry) -> None:
    # Its op.toml would be shown, and its version chosen, without a signature.
    refused(published(registry, [], make_artifact(PACKAGE, [], {})), "has no passport: nobody vouches for it")


def test_two_passports_for_one_target_are_refused(registry: Registry) -> None:
    again = publishing.passports_of(ARTIFACT, key=PUBLISHER)[0]
    refused(published(registry, [*PASSPORTS, again]), "two passports for one target")


def test_passports_that_are_swapped_between_targets_are_refused(registry: Registry) -> None:
    first, second = PASSPORTS
    refused(
        published(registry, [replace(first, target=V4), replace(second, target=V3)]),
        "passport of sample@1.0.0 on x86_64-v3: .* is not attested",
    )


def test_the_passports_of_another_version_are_refused(registry: Registry) -> None:
    other = publishing.artifact_of(publishing.load(version="1.0.1"), [V3, V4])
    refused(published(registry, publishing.passports_of(other)), "source.tar has the digest")


def test_passports_of_keys_that_are_not_trusted_are_refused(registry: Registry) -> None:
    version = published(registry, publishing.passports_of(ARTIFACT, key=STRANGER))
    refused(version, "is not trusted here")
    stranger = TrustedKeys.of([PublicKey(STRANGER.public_key())])
    assert not verify_version(version, stranger)[0].is_self_attested


def test_a_passport_that_failed_verifies_all_the_same(registry: Registry) -> None:
    # "Failing results are signed and published too": a verified passport is not a passed one.
    version = published(registry, publishing.passports_of(ARTIFACT, verdict="wrong_result"))
    assert {passport.verification.verdict for passport in verify_version(version, TRUSTED)} == {"failed"}


def artifact_with(**changes: object) -> OperatorArtifact:
    return OperatorArtifact(replace(ARTIFACT.config, **changes), ARTIFACT.layers)  # type: ignore[arg-type]


def test_source_that_is_not_the_package_that_was_built_is_refused(registry: Registry) -> None:
    artifact = artifact_with(package="sha256:" + "0" * 64)
    version = published(registry, publishing.passports_of(artifact), artifact)
    with pytest.raises(
        VerificationError, match=f"the source has the digest {PACKAGE.digest}, the config says sha256:000"
    ):
        verify_version(version, TRUSTED)


def test_a_manifest_in_the_config_that_is_not_the_sources_is_refused(registry: Registry) -> None:
    artifact = artifact_with(manifest=ARTIFACT.config.manifest.replace("A sample", "Another"))
    version = published(registry, publishing.passports_of(artifact), artifact)
    with pytest.raises(VerificationError, match=r"op\.toml in the source is not the one in the config"):
        verify_version(version, TRUSTED)


def test_the_manifest_that_the_matrix_reads_is_one_that_somebody_signed(registry: Registry) -> None:
    # `verified_passports` is all that the matrix asks for. The config's op.toml is in no passport, so it has to be held
    # against the source, which is; otherwise whoever can write the registry decides what a kernel is taken for.
    artifact = artifact_with(manifest=ARTIFACT.config.manifest.replace('name = "Sample"', 'name = "Other"'))
    version = published(registry, publishing.passports_of(artifact), artifact)
    with pytest.raises(VerificationError):
        verified_passports(version, TRUSTED)


def test_kernels_under_each_others_names_are_refused(registry: Registry) -> None:
    first, second, *others = publishing.kernels_of(PACKAGE, V3, V4)
    kernels = [replace(first, content=second.content), replace(second, content=first.content), *others]
    runtimes = {target: b"runtime of " + target.encode() for target in (V3, V4)}
    version = published(registry, PASSPORTS, make_artifact(PACKAGE, kernels, runtimes))
    refused(version, "float(16|32).general.x86_64-v3.halide has the digest")
