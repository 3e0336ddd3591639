"""From the registry's bytes to verified passports."""

from __future__ import annotations

from hfreg.digests import tree_digest
from hfreg.errors import VerificationError
from hfreg.kernels.artifact import SOURCE_TITLE, runtime_title
from hfreg.ops.manifest import Operator
from hfreg.ops.package import MANIFEST
from hfreg.passports.keys import TrustedKeys
from hfreg.passports.passport import Passport, verify_passport
from hfreg.registry.archive import unpack
from hfreg.registry.registry import OpVersion


def artifacts_of(version: OpVersion, target: str) -> dict[str, str]:
    """The digests of what a passport vouches for, by name: source, kernels of the target, host runtime."""
    kernels = {entry.key.slug: entry.digest for entry in version.config.kernels if entry.key.target == target}
    runtime = version.config.runtimes.get(target)
    source = {layer.title: layer.digest for layer in version.manifest.layers if layer.title == SOURCE_TITLE}
    return source | kernels | ({runtime_title(target): runtime} if runtime else {})


def verified_passports(version: OpVersion, trusted: TrustedKeys) -> list[Passport]:
    """The passports of an op version, each verified; one for every target that it has kernels for.

    What else is said of the version is what was signed then: the digests of source, kernels and runtimes, and the op
    manifest, which is the one in the source.

    Raises:
        VerificationError: one does not verify, or is missing, or the config has another op manifest.
        RegistryError: a blob is damaged.
    """
    passports = [
        verify_passport(
            stored.bundles,
            trusted,
            reference=version.reference,
            target=stored.target,
            package=version.config.package,
            artifacts=artifacts_of(version, stored.target),
        )
        for stored in version.passports()
    ]
    targets = [passport.target for passport in passports]
    served = {entry.key.target for entry in version.config.kernels} | set(version.config.runtimes)
    for target in sorted(served - set(targets)):
        raise VerificationError(f"there are artifacts for {target}, but no passport", where=version.reference)
    if len(set(targets)) != len(targets):
        raise VerificationError("two passports for one target", where=version.reference)
    if not passports:
        raise VerificationError("has no passport: nobody vouches for it", where=version.reference)
    source = unpack(version.layer(SOURCE_TITLE), where=f"{version.reference}/{SOURCE_TITLE}")
    if source.get(MANIFEST) != version.config.manifest.encode():
        raise VerificationError("op.toml in the source is not the one in the config", where=version.reference)
    for passport in passports:
        _check_operator(version.op_manifest.operator, passport)
    return passports


def _check_operator(operator: Operator, passport: Passport) -> None:
    """The passport speaks of the operator that the op manifest is about."""
    said = passport.verification.operator
    claims = (
        ("domain", said.domain, operator.domain),
        ("operator", said.operator, operator.name),
        ("since-versions", said.since_versions, operator.since_versions),
    )
    for what, claimed, expected in claims:
        if claimed != expected:
            where = f"passport of {passport.reference} on {passport.target}"
            raise VerificationError(f"the verification's {what} is {claimed!r}, expected {expected!r}", where=where)


def verify_version(version: OpVersion, trusted: TrustedKeys) -> list[Passport]:
    """Verify everything about an op version: every blob, the package against its digest, every passport.

    Raises:
        VerificationError: a passport does not verify, or the source is not the package that was built.
        RegistryError: a blob is damaged.
    """
    for layer in version.manifest.layers:
        version.layout.blob(layer)
    if (digest := tree_digest(version.files())) != version.config.package:
        raise VerificationError(
            f"the source has the digest {digest}, the config says {version.config.package}", where=version.reference
        )
    return verified_passports(version, trusted)
