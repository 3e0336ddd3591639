"""Local signing keys, and the public keys that a user trusts.

Keys are ECDSA P-256. A public key is named by its hint: base64 of the SHA-256 of its SubjectPublicKeyInfo in DER, which
is what the Sigstore bundle's `publicKey.hint` and the DSSE `keyid` hold.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from hfreg.errors import MachineError, VerificationError
from hfreg.files import write_atomic, writing
from hfreg.passports.dsse import encode_base64
from hfreg.resources import config_home

SIGNING_KEY = "signing-key.pem"


@dataclass(frozen=True)
class PublicKey:
    """A key that verifies signatures."""

    key: ec.EllipticCurvePublicKey

    @classmethod
    def from_pem(cls, pem: bytes, *, where: str) -> PublicKey:
        """Read a public key.

        Raises:
            VerificationError: it is no P-256 public key in PEM.
        """
        try:
            key = serialization.load_pem_public_key(pem)
        except (ValueError, UnsupportedAlgorithm) as error:
            raise VerificationError(f"no public key in PEM: {error}", where=where) from error
        if not isinstance(key, ec.EllipticCurvePublicKey) or not isinstance(key.curve, ec.SECP256R1):
            raise VerificationError("not an ECDSA P-256 key", where=where)
        return cls(key)

    @cached_property
    def hint(self) -> str:
        der = self.key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
        return encode_base64(hashlib.sha256(der).digest())

    def pem(self) -> bytes:
        return self.key.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)

    def verifies(self, signature: bytes, message: bytes) -> bool:
        """Whether an ECDSA signature over SHA-256 (DER) is this key's."""
        try:
            self.key.verify(signature, message, ec.ECDSA(hashes.SHA256()))
        except InvalidSignature:
            return False
        return True


@dataclass(frozen=True)
class SigningKey:
    """A private key on this machine."""

    key: ec.EllipticCurvePrivateKey

    @cached_property
    def public(self) -> PublicKey:
        return PublicKey(self.key.public_key())

    def sign(self, message: bytes) -> bytes:
        """An ECDSA signature over SHA-256, in DER."""
        return self.key.sign(message, ec.ECDSA(hashes.SHA256()))


def signing_key_path() -> Path:
    """Where the signing key is: `$HFREG_SIGNING_KEY`, or in hfreg's configuration folder."""
    explicit = os.environ.get("HFREG_SIGNING_KEY")
    return Path(explicit) if explicit else config_home() / SIGNING_KEY


def load_or_create_signing_key(path: Path) -> tuple[SigningKey, bool]:
    """The signing key, made on first use with mode 0600. The second value says whether it is new.

    Raises:
        MachineError: others can read it, it is no P-256 private key, or it cannot be written.
    """
    if path.exists():
        return _load_signing_key(path), False
    key = ec.generate_private_key(ec.SECP256R1())
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    write_atomic(path, pem, mode=0o600)
    return SigningKey(key), True


def _load_signing_key(path: Path) -> SigningKey:
    try:
        mode, pem = stat.S_IMODE(path.stat().st_mode), path.read_bytes()
    except OSError as error:
        raise MachineError(f"the signing key cannot be read: {error.strerror}", where=str(path)) from error
    if mode & 0o077:
        raise MachineError(
            f"the signing key can be read by others (mode {mode:04o})", where=str(path), hint=f"chmod 600 {path}"
        )
    try:
        key = serialization.load_pem_private_key(pem, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise MachineError(
            f"no private key: {error}", where=str(path), hint="move it away to make a new one"
        ) from error
    if not isinstance(key, ec.EllipticCurvePrivateKey) or not isinstance(key.curve, ec.SECP256R1):
        raise MachineError("not an ECDSA P-256 key", where=str(path), hint="move it away to make a new one")
    return SigningKey(key)


@dataclass(frozen=True)
class TrustedKeys:
    """The public keys that a user believes, by hint."""

    keys: dict[str, PublicKey]
    own: str = ""
    """The hint of this machine's own signing key, empty where it has none."""

    @classmethod
    def of(cls, keys: Iterable[PublicKey], *, own: PublicKey | None = None) -> TrustedKeys:
        everyone = [*keys, *([own] if own else [])]
        return cls({key.hint: key for key in everyone}, own.hint if own else "")


def trusted_keys(extra: Iterable[Path] = ()) -> TrustedKeys:
    """The keys that count on this machine: its own, those in `trusted/` of the configuration folder, and `extra`.

    Raises:
        VerificationError: a file holds no key.
    """
    folder = config_home() / "trusted"
    paths = [*sorted(folder.glob("*.pem")), *extra]
    own_path = signing_key_path()
    own = _load_signing_key(own_path).public if own_path.exists() else None
    keys = []
    for path in paths:
        try:
            keys.append(PublicKey.from_pem(path.read_bytes(), where=str(path)))
        except OSError as error:
            raise VerificationError(f"cannot be read: {error.strerror}", where=str(path)) from error
    return TrustedKeys.of(keys, own=own)
