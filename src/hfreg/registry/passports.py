"""From the registry's bytes to verified passports."""

from __future__ import annotations

from hfreg.digests import tree_digest
from hfreg.errors import VerificationError
from hfreg.passports.keys import TrustedKeys
from hfreg.passports.passport import Passport, verify_passport
from hfreg.registry.artifact import SOURCE_TITLE, runtime_title
from hfreg.registry.registry import OpVersion


def artifacts_of(version: OpVersion, target: str) -> dict[str, str]:
    """The digests of what a passport vouches for, by name: source, kernels of the target, host runtime."""
    kernels = {entry.key.slug: entry.digest for entry in version.config.kernels if entry.key.target == target}
    runtime = version.config.runtimes.get(target)
    source = {layer.title: layer.digest for layer in version.manifest.layers if layer.title == SOURCE_TITLE}
    return source | kernels | ({runtime_title(target): runtime} if runtime else {})


def verified_passports(version: OpVersion, trusted: TrustedKeys) -> list[Passport]:
    """The passports of an op version, each verified; one for every target that it has kernels for.

    Raises:
        VerificationError: one does not verify, or is missing.
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
    for target in sorted({entry.key.target for entry in version.config.kernels} - set(targets)):
        raise VerificationError(f"there are kernels for {target}, but no passport", where=version.reference)
    if len(set(targets)) != len(targets):
        raise VerificationError("two passports for one target", where=version.reference)
    return passports


def verify_version(version: OpVersion, trusted: TrustedKeys) -> list[Passport]:
    """Verify everything about an op version: every blob, the source against its digest, every passport.

    Raises:
        VerificationError: a passport does not verify, or the source is not the package that was built.
        RegistryError: a blob is damaged.
    """
    for layer in version.manifest.layers:
        version.layout.blob(layer)
    files = version.files()
    if (digest := tree_digest(files)) != version.config.package:
        raise VerificationError(
            f"the source has the digest {digest}, the config says {version.config.package}", where=version.reference
        )
    if files["op.toml"].decode() != version.config.manifest:
        raise VerificationError("op.toml in the source is not the one in the config", where=version.reference)
    return verified_passports(version, trusted)
