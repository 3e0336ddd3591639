"""Archives with one form: the same files always give the same bytes. Reading trusts nothing."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping
from pathlib import PurePosixPath

from hfreg.errors import VerificationError

MAX_MEMBER_BYTES = 16 << 20
MAX_TOTAL_BYTES = 128 << 20
MAX_MEMBERS = 10_000


def pack(files: Mapping[str, bytes]) -> bytes:
    """A tar archive of plain files: sorted, owned by nobody, without times."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name in sorted(files):
            member = tarfile.TarInfo(name)
            member.size = len(files[name])
            member.mode = 0o644
            archive.addfile(member, io.BytesIO(files[name]))
    return buffer.getvalue()


def unpack(data: bytes, *, where: str) -> dict[str, bytes]:
    """The files of an archive, in memory.

    Raises:
        VerificationError: it is no archive of plain files with relative names inside it, or it is too large.
    """
    files: dict[str, bytes] = {}
    total = 0
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
            for member in archive:
                _check_member(member, files, where)
                total += member.size
                if total > MAX_TOTAL_BYTES or len(files) >= MAX_MEMBERS:
                    raise VerificationError("the archive unpacks to too much", where=where)
                content = archive.extractfile(member)
                assert content is not None
                files[member.name] = content.read()
        is_canonical = pack(files) == data
    except (tarfile.TarError, EOFError, ValueError) as error:
        raise VerificationError(f"not an archive: {error}", where=where) from error
    if not is_canonical:
        raise VerificationError("the archive is not in the one form that hfreg writes", where=where)
    return files


def _check_member(member: tarfile.TarInfo, files: Mapping[str, bytes], where: str) -> None:
    path = PurePosixPath(member.name)
    if not member.isreg():
        raise VerificationError(f"{member.name!r} is not a plain file", where=where)
    if (
        path.is_absolute()
        or not path.parts
        or ".." in path.parts
        or str(path) != member.name
        or "\\" in member.name
        or "\0" in member.name
    ):
        raise VerificationError(f"{member.name!r} points outside the archive", where=where)
    if any(str(place) in files for place in (path, *path.parents)):  # a folder comes after its name
        raise VerificationError(f"{member.name!r} is there twice, or lies in a file", where=where)
    if member.size > MAX_MEMBER_BYTES:
        raise VerificationError(f"{member.name!r} is larger than {MAX_MEMBER_BYTES >> 20} MiB", where=where)
