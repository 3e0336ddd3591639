from __future__ import annotations

import base64
import hashlib
import os
import stat
import subprocess
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from hfreg.errors import MachineError, VerificationError
from hfreg.passports.keys import (
    PublicKey,
    SigningKey,
    TrustedKeys,
    load_or_create_signing_key,
    signing_key_path,
    trusted_keys,
)
from unit import signing

PEM, DER = serialization.Encoding.PEM, serialization.Encoding.DER
SPKI = serialization.PublicFormat.SubjectPublicKeyInfo
PKCS8, NO_PASSWORD = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()

# A key of RFC 6979, A.2.5: P-256, SHA-256.
RFC_KEY = ec.derive_private_key(0xC9AFA9D845BA75166B5C215767B1D6934E50C3DB36E89B127B8A622B120F6721, ec.SECP256R1())


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A configuration folder of this test's own."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path / "config" / "hfreg"


def write_key(path: Path, content: bytes, mode: int = 0o600) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    path.chmod(mode)
    return path


def private_pem(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey | ed25519.Ed25519PrivateKey) -> bytes:
    return key.private_bytes(PEM, PKCS8, NO_PASSWORD)


def public_pem(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey | ed25519.Ed25519PrivateKey) -> bytes:
    return key.public_key().public_bytes(PEM, SPKI)


def test_a_new_key_is_made_once_and_only_its_owner_can_read_it(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "key.pem"
    before = os.umask(0)
    try:
        key, is_new = load_or_create_signing_key(path)
    finally:
        os.umask(before)
    assert is_new
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) & 0o077 == 0
    again, is_new = load_or_create_signing_key(path)
    assert not is_new
    assert again.public.hint == key.public.hint
    assert [entry.name for entry in path.parent.iterdir()] == ["key.pem"]


def test_two_new_keys_differ(tmp_path: Path) -> None:
    hints = {load_or_create_signing_key(tmp_path / name)[0].public.hint for name in "abc"}
    assert len(hints) == 3


def test_openssl_reads_the_key_and_its_curve(tmp_path: Path) -> None:
    load_or_create_signing_key(tmp_path / "key.pem")
    key = serialization.load_pem_private_key((tmp_path / "key.pem").read_bytes(), password=None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    assert key.curve.name == "secp256r1"


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o620, 0o610, 0o601, 0o644, 0o666, 0o777])
def test_a_key_that_others_can_read_or_change_is_refused(tmp_path: Path, mode: int) -> None:
    path = write_key(tmp_path / "key.pem", private_pem(signing.KEY), mode)
    with pytest.raises(MachineError, match=f"can be read by others \\(mode {mode:04o}\\)") as caught:
        load_or_create_signing_key(path)
    assert caught.value.hint == f"chmod 600 {path}"


@pytest.mark.parametrize("mode", [0o600, 0o400, 0o700])
def test_a_key_of_its_owner_alone_is_taken(tmp_path: Path, mode: int) -> None:
    path = write_key(tmp_path / "key.pem", private_pem(signing.KEY), mode)
    assert load_or_create_signing_key(path)[0].public.hint == signing.hint_of(signing.KEY)


WITH_PASSWORD = signing.KEY.private_bytes(PEM, PKCS8, serialization.BestAvailableEncryption(b"secret"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no private key"),
        (b"junk", "no private key"),
        (public_pem(signing.KEY), "no private key"),
        (WITH_PASSWORD, "no private key"),
        (private_pem(ec.generate_private_key(ec.SECP384R1())), "not an ECDSA P-256 key"),
        (private_pem(ec.generate_private_key(ec.SECP256K1())), "not an ECDSA P-256 key"),
        (private_pem(ed25519.Ed25519PrivateKey.generate()), "not an ECDSA P-256 key"),
        (private_pem(rsa.generate_private_key(65537, 2048)), "not an ECDSA P-256 key"),
    ],
    ids=["empty", "junk", "public", "password", "P-384", "secp256k1", "Ed25519", "RSA"],
)
def test_what_is_no_p_256_private_key_is_refused_and_kept(tmp_path: Path, content: bytes, message: str) -> None:
    path = write_key(tmp_path / "key.pem", content)
    with pytest.raises(MachineError, match=message) as caught:
        load_or_create_signing_key(path)
    assert caught.value.where == str(path)
    assert path.read_bytes() == content


def test_the_hint_is_base64_of_the_sha256_of_the_key_in_der() -> None:
    # RFC 6979 gives the public point; a P-256 SubjectPublicKeyInfo is this prefix and the point (RFC 5480).
    x = 0x60FED4BA255A9D31C961EB74C6356D68C049B8923B61FA6CE669622E60F29FB6
    y = 0x7903FE1008B8BC99A41AE9E95628BC64F2F1B20C2D7E9F5177A3C294D4462299
    prefix = bytes.fromhex("3059301306072a8648ce3d020106082a8648ce3d030107034200")
    der = prefix + b"\4" + x.to_bytes(32, "big") + y.to_bytes(32, "big")
    expected = base64.b64encode(hashlib.sha256(der).digest()).decode()
    assert SigningKey(RFC_KEY).public.hint == expected
    assert PublicKey.from_pem(public_pem(RFC_KEY), where="here").hint == expected
    assert signing.hint_of(RFC_KEY) == expected


def test_the_hint_is_the_same_however_the_point_is_written() -> None:
    # RFC 5480: the point may be compressed. The same key must not have a second name.
    x = bytes.fromhex("60FED4BA255A9D31C961EB74C6356D68C049B8923B61FA6CE669622E60F29FB6")
    der = bytes.fromhex("3039301306072a8648ce3d020106082a8648ce3d030107032200") + b"\3" + x  # Y is odd
    pem = b"-----BEGIN PUBLIC KEY-----\n" + base64.b64encode(der) + b"\n-----END PUBLIC KEY-----\n"
    assert PublicKey.from_pem(pem, where="here").hint == signing.hint_of(RFC_KEY)


def test_a_public_key_comes_back_from_its_pem() -> None:
    key = PublicKey(signing.KEY.public_key())
    assert key.pem() == public_pem(signing.KEY)
    assert PublicKey.from_pem(key.pem(), where="here").hint == key.hint


@pytest.mark.parametrize(
    ("pem", "message"),
    [
        (b"", "no public key in PEM"),
        (b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n", "no public key in PEM"),
        (signing.KEY.public_key().public_bytes(DER, SPKI), "no public key in PEM"),
        (private_pem(signing.KEY), "no public key in PEM"),
        (public_pem(ec.generate_private_key(ec.SECP384R1())), "not an ECDSA P-256 key"),
        (public_pem(ed25519.Ed25519PrivateKey.generate()), "not an ECDSA P-256 key"),
        (public_pem(rsa.generate_private_key(65537, 2048)), "not an ECDSA P-256 key"),
    ],
    ids=["empty", "broken", "DER", "private", "P-384", "Ed25519", "RSA"],
)
def test_what_is_no_p_256_public_key_is_refused(pem: bytes, message: str) -> None:
    with pytest.raises(VerificationError, match=message) as caught:
        PublicKey.from_pem(pem, where="publisher.pem")
    assert caught.value.where == "publisher.pem"


def test_a_signature_is_ecdsa_over_sha256_and_verifies_with_the_public_key_only() -> None:
    key = SigningKey(signing.KEY)
    signature = key.sign(b"message")
    signing.KEY.public_key().verify(signature, b"message", ec.ECDSA(hashes.SHA256()))  # raises if it does not
    assert key.public.verifies(signature, b"message")
    assert not key.public.verifies(signature, b"massage")
    assert not PublicKey(signing.PUBLISHER.public_key()).verifies(signature, b"message")


@pytest.mark.parametrize(
    "signature", [b"", b"\0", b"junk", b"\x30\x06\x02\x01\x00\x02\x01\x00", b"\x30\x80", b"x" * 5000]
)
def test_junk_is_no_signature(signature: bytes) -> None:
    assert not PublicKey(signing.KEY.public_key()).verifies(signature, b"message")


def test_a_signature_of_rfc_6979_verifies() -> None:
    # RFC 6979, A.2.5, message "sample", SHA-256.
    from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

    r = 0xEFD48B2AACB6A8FD1140DD9CD45E81D69D2C877B56AAF991C34D0EA84EAF3716
    s = 0xF7CB1C942D657C41D436C7A1B6E29F65F3E900DBB9AFF4064DC4AB2F843ACDA8
    assert PublicKey(RFC_KEY.public_key()).verifies(encode_dss_signature(r, s), b"sample")


def test_the_signing_key_is_where_the_variable_says_or_in_the_configuration(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert signing_key_path() == home / "signing-key.pem"
    monkeypatch.setenv("HFREG_SIGNING_KEY", str(tmp_path / "mine.pem"))
    assert signing_key_path() == tmp_path / "mine.pem"


def test_nobody_is_trusted_where_there_are_no_keys(home: Path) -> None:
    assert trusted_keys() == TrustedKeys({}, "")
    assert not home.exists(), "looking does not make a key"


def test_the_own_key_the_trusted_folder_and_the_extra_keys_count(home: Path, tmp_path: Path) -> None:
    write_key(home / "signing-key.pem", private_pem(signing.KEY))
    write_key(home / "trusted" / "publisher.pem", public_pem(signing.PUBLISHER))
    write_key(home / "trusted" / "notes.txt", b"not a key")
    extra = write_key(tmp_path / "extra.pem", public_pem(RFC_KEY))
    trusted = trusted_keys([extra])
    assert set(trusted.keys) == {signing.hint_of(key) for key in (signing.KEY, signing.PUBLISHER, RFC_KEY)}
    assert all(hint == key.hint for hint, key in trusted.keys.items())
    assert trusted.own == signing.hint_of(signing.KEY)


def test_a_trusted_file_that_is_no_key_is_an_error_and_not_passed_over(home: Path, tmp_path: Path) -> None:
    path = write_key(home / "trusted" / "broken.pem", b"junk")
    with pytest.raises(VerificationError, match="no public key in PEM") as caught:
        trusted_keys()
    assert caught.value.where == str(path)
    path.unlink()
    with pytest.raises(VerificationError, match="cannot be read: No such file or directory"):
        trusted_keys([tmp_path / "absent.pem"])


def test_an_own_key_that_others_can_read_is_not_trusted(home: Path) -> None:
    write_key(home / "signing-key.pem", private_pem(signing.KEY), 0o644)
    with pytest.raises(MachineError, match="can be read by others"):
        trusted_keys()


def test_openssl_verifies_a_signature_of_ours(tmp_path: Path) -> None:
    # An independent program, where there is one.
    (tmp_path / "key.pem").write_bytes(public_pem(signing.KEY))
    (tmp_path / "sig").write_bytes(SigningKey(signing.KEY).sign(b"message"))
    command = ["openssl", "dgst", "-sha256", "-verify", "key.pem", "-signature", "sig"]
    try:
        done = subprocess.run(command, cwd=tmp_path, input=b"message", capture_output=True, check=False)
    except FileNotFoundError:
        pytest.skip("openssl is missing")
    assert done.stdout == b"Verified OK\n"
