from __future__ import annotations

import contextlib
import io
import tarfile
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hfreg.errors import VerificationError
from hfreg.registry import archive
from hfreg.registry.archive import pack, unpack

names = st.from_regex(r"[a-z0-9_]{1,8}(/[a-z0-9_.-]{1,60}){0,3}", fullmatch=True).filter(
    lambda name: not {"", ".", ".."} & set(name.split("/"))
)
trees = st.dictionaries(names | st.just("long/" + "n" * 150), st.binary(max_size=1100), max_size=4).filter(
    lambda tree: not any(name.startswith(f"{other}/") for name in tree for other in tree)
)


def member(name: str, content: bytes = b"x", **fields: object) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size = len(content)
    info.mode = 0o644
    for field, value in fields.items():
        setattr(info, field, value)
    return info, content


def tar(*members: tuple[tarfile.TarInfo, bytes], format: int = tarfile.PAX_FORMAT) -> bytes:  # noqa: A002
    """An archive as anybody could write one."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=format) as file:
        for info, content in members:
            file.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def refused(data: bytes, message: str) -> None:
    with pytest.raises(VerificationError, match=message) as caught:
        unpack(data, where="source.tar")
    assert caught.value.where == "source.tar"


@given(trees, st.randoms())
def test_files_come_back_and_the_same_files_are_always_the_same_bytes(
    files: dict[str, bytes], random: Callable[[], float]
) -> None:
    shuffled = list(files.items())
    getattr(random, "shuffle")(shuffled)  # noqa: B009 (Hypothesis types it as random.Random)
    data = pack(files)
    assert pack(dict(shuffled)) == data
    assert unpack(data, where="here") == files


@given(trees)
def test_any_tar_program_reads_the_archive_and_finds_nothing_of_this_machine(files: dict[str, bytes]) -> None:
    with tarfile.open(fileobj=io.BytesIO(pack(files))) as file:
        members = file.getmembers()
        assert [info.name for info in members] == sorted(files)
        for info in members:
            content = file.extractfile(info)
            assert content is not None and content.read() == files[info.name]
            assert (info.uid, info.gid, info.uname, info.gname, info.mtime, info.mode) == (0, 0, "", "", 0, 0o644)


@pytest.mark.parametrize(
    "name",
    ["/etc/passwd", "//a", "../a", "a/../b", "a/..", "..", ".", "./a", "a/./b", "a//b", "a\\b", "..\\a", "a/../../b"],
)
def test_a_name_that_points_elsewhere_is_refused(name: str) -> None:
    refused(tar(member(name)), "points outside the archive")


@pytest.mark.parametrize(
    ("kind", "link"),
    [
        (tarfile.SYMTYPE, "a"),
        (tarfile.SYMTYPE, "/etc/passwd"),
        (tarfile.LNKTYPE, "a"),
        (tarfile.DIRTYPE, ""),
        (tarfile.FIFOTYPE, ""),
        (tarfile.CHRTYPE, ""),
        (tarfile.BLKTYPE, ""),
    ],
    ids=["link", "link outside", "hard link", "folder", "pipe", "character device", "block device"],
)
def test_only_plain_files_are_taken(kind: bytes, link: str) -> None:
    special = member("b", b"", type=kind, linkname=link, devmajor=1, devminor=3)
    refused(tar(member("a"), special), "'b' is not a plain file")
    refused(tar(special), "'b' is not a plain file")


def test_a_file_that_is_there_twice_is_refused() -> None:
    refused(tar(member("a", b"1"), member("a", b"2")), "'a' is there twice")
    refused(tar(member("a", b"1"), member("b"), member("a", b"1")), "'a' is there twice")


def header_only(name: str, size: int) -> bytes:
    """A header that promises content which is not there."""
    info = tarfile.TarInfo(name)
    info.size = size
    return info.tobuf(tarfile.PAX_FORMAT) + b"\0" * 1024


@pytest.mark.parametrize("size", [(16 << 20) + 1, 1 << 33, 1 << 60])
def test_a_file_that_claims_to_be_large_is_refused_before_it_is_read(size: int) -> None:
    refused(header_only("a", size), "'a' is larger than 16 MiB")


def test_an_archive_of_too_many_bytes_or_files_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    files = {f"f{n:02}": b"x" * 100 for n in range(10)}
    data = pack(files)
    monkeypatch.setattr(archive, "MAX_TOTAL_BYTES", 1000)
    monkeypatch.setattr(archive, "MAX_MEMBERS", 10)
    assert unpack(data, where="here") == files
    monkeypatch.setattr(archive, "MAX_TOTAL_BYTES", 999)
    refused(data, "unpacks to too much")
    monkeypatch.setattr(archive, "MAX_TOTAL_BYTES", 1000)
    monkeypatch.setattr(archive, "MAX_MEMBERS", 9)
    refused(data, "unpacks to too much")


def test_the_limits_are_above_what_a_package_may_have() -> None:
    from hfreg.ops.package import MAX_FILE_BYTES, MAX_PACKAGE_BYTES

    assert archive.MAX_MEMBER_BYTES >= MAX_FILE_BYTES
    assert archive.MAX_TOTAL_BYTES >= MAX_PACKAGE_BYTES


FORM = "not in the one form that hfreg writes"


@pytest.mark.parametrize(
    "data",
    [
        tar(member("b"), member("a")),
        tar(member("a", mode=0o755)),
        tar(member("a", mode=0o4644)),
        tar(member("a", mtime=1)),
        tar(member("a", uid=1000)),
        tar(member("a", uname="root")),
        tar(member("a", pax_headers={"comment": "x"})),
        tar(member("a"), format=tarfile.GNU_FORMAT),
        tar(member("a", type=tarfile.CONTTYPE)),
        pack({"a": b"x"}) + b"\0" * 512,
        pack({"a": b"x"}) + b"trailing",
        pack({"a": b"x"})[:-512],
        pack({"a": b"x"}) + pack({"b": b"y"}),
    ],
    ids=[
        "order",
        "mode",
        "setuid",
        "time",
        "owner",
        "owner's name",
        "extra header",
        "GNU",
        "contiguous",
        "more padding",
        "trailing bytes",
        "less padding",
        "two archives",
    ],
)
def test_an_archive_written_in_another_way_is_refused(data: bytes) -> None:
    refused(data, FORM)


@pytest.mark.parametrize("data", [b"", b"junk", b"x" * 10240, b"\x1f\x8b" + b"\0" * 600], ids=range(4))
def test_what_is_no_archive_is_refused(data: bytes) -> None:
    refused(data, "not an archive")


def test_a_compressed_archive_is_refused() -> None:
    import gzip

    refused(gzip.compress(pack({"a": b"x"})), "not an archive")


@pytest.mark.parametrize("length", range(0, 2048, 97))
def test_an_archive_that_is_cut_off_is_refused(length: int) -> None:
    with pytest.raises(VerificationError):
        unpack(pack({"a": b"x" * 1000})[:length], where="here")


def test_every_changed_byte_of_an_archive_is_refused_or_changes_a_files_content() -> None:
    files = {"a": b"some content", "b/c": b"more"}
    data = pack(files)
    silent = []
    content_ends = 4 * 512 + 512  # two headers, two blocks of content, and a block of the padding behind them
    for position in (*range(content_ends), *range(content_ends, len(data), 61)):
        altered = bytearray(data)
        altered[position] ^= 0x01
        try:
            found = unpack(bytes(altered), where="here")
        except VerificationError:
            continue
        if found == files:
            silent.append(position)
    assert not silent


@given(st.data())
def test_a_damaged_archive_is_refused_with_the_error_that_is_expected(data: st.DataObject) -> None:
    damaged = bytearray(pack({"a": b"some content", "long/" + "n" * 150: b"more"}))
    for _ in range(data.draw(st.integers(1, 6))):
        damaged[data.draw(st.integers(0, 4096))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(VerificationError):
        unpack(bytes(damaged), where="here")


def test_a_file_and_a_folder_cannot_have_one_name() -> None:
    # Unpacked in memory both are there; on a disk they cannot be.
    with pytest.raises(VerificationError):
        unpack(pack({"a": b"1", "a/b": b"2"}), where="here")
