"""An OCI image layout on disk: blobs by digest, and one index. https://github.com/opencontainers/image-spec (v1.1)

Invariants:
    - a blob never changes and is hashed on every read;
    - `index.json` is replaced in one rename, after all that it names is on the disk: a process that is killed at any
      point leaves the layout as it was, or as it was meant to be;
    - one writer at a time holds the lock; readers need none.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from hfreg.digests import is_digest, sha256
from hfreg.errors import RegistryError
from hfreg.files import TEMPORARY_PREFIX, locked, read_plain, remove_leftovers, sync_folder, write_atomic, writing
from hfreg.passports.bundle import MAX_BUNDLE_BYTES
from hfreg.registry import media_types
from hfreg.registry.oci import EMPTY_CONFIG, Descriptor, Manifest, dump_index, parse_index

LAYOUT_FILE = "oci-layout"
LAYOUT_CONTENT = b'{"imageLayoutVersion":"1.0.0"}'
INDEX_FILE = "index.json"
LOCK_FILE = ".hfreg-lock"
MAX_INDEX_BYTES = 64 << 20
MAX_BLOB_BYTES = {
    media_types.MANIFEST: 4 << 20,
    media_types.EMPTY: len(EMPTY_CONFIG),
    media_types.BUNDLE: MAX_BUNDLE_BYTES,
}
"""The largest blob by media type; 4 MiB is what registries accept of a manifest (OCI distribution specification)."""
MAX_OTHER_BLOB_BYTES = 128 << 20


class Layout:
    """A layout in a folder; the folder need not exist to be read: then the layout is empty."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @property
    def _blobs(self) -> Path:
        return self.root / "blobs" / "sha256"

    def index(self) -> tuple[Descriptor, ...]:
        """The entries of the index.

        Raises:
            RegistryError: the folder holds no layout, or the index is damaged.
        """
        path, marker = self.root / INDEX_FILE, self.root / LAYOUT_FILE
        if not os.path.lexists(path):
            if any(not blob.name.startswith(TEMPORARY_PREFIX) for blob in self._blobs.glob("*")):
                raise RegistryError("is missing, but there are blobs", where=str(path))
            return ()
        if self._read(marker) != LAYOUT_CONTENT:
            raise RegistryError("not an OCI image layout 1.0.0 as hfreg writes it", where=str(marker))
        return parse_index(self._read(path), where=str(path))

    def _read(self, path: Path) -> bytes:
        try:
            return read_plain(path, limit=MAX_INDEX_BYTES)
        except OSError as error:
            raise RegistryError(f"cannot be read: {error.strerror}", where=str(path)) from error

    def blob(self, descriptor: Descriptor) -> bytes:
        """The content that a descriptor names.

        Raises:
            RegistryError: it is not there, it is other content, or it is larger than any of its kind.
        """
        path = self._path(descriptor.digest)
        what = f"the blob of {descriptor.title or descriptor.media_type}"
        if descriptor.size > MAX_BLOB_BYTES.get(descriptor.media_type, MAX_OTHER_BLOB_BYTES):
            raise RegistryError(f"{what} has {descriptor.size} bytes, more than any of its kind", where=str(path))
        try:
            content = read_plain(path, limit=descriptor.size)
        except FileNotFoundError:
            raise RegistryError(f"{what} is missing", where=str(path)) from None
        except OSError as error:
            raise RegistryError(f"{what} cannot be read: {error.strerror}", where=str(path)) from error
        if len(content) != descriptor.size:
            raise RegistryError(f"{what} has {len(content)} bytes instead of {descriptor.size}", where=str(path))
        if (digest := sha256(content)) != descriptor.digest:
            raise RegistryError(f"{what} was changed: its digest is now {digest}", where=str(path))
        return content

    def manifest(self, entry: Descriptor) -> Manifest:
        """The manifest that an entry of the index names; the two must agree.

        Raises:
            RegistryError: it is damaged, or the index says something else about it.
        """
        where = str(self._path(entry.digest))
        manifest = Manifest.parse(self.blob(entry), where=where)
        listed = manifest.descriptor(ref_name=entry.annotations.get(media_types.REF_NAME, ""))
        if listed != entry:
            raise RegistryError(
                f"the index describes {entry.annotations or entry.digest} otherwise than the manifest itself, "
                f"which has {manifest.annotations}",
                where=str(self.root / INDEX_FILE),
            )
        return manifest

    def _path(self, digest: str) -> Path:
        if not is_digest(digest):  # what keeps a digest from naming a path elsewhere
            raise RegistryError(f"{digest!r} is not a SHA-256 digest", where=str(self.root))
        return self._blobs / digest.removeprefix("sha256:")

    @contextlib.contextmanager
    def writing(self, purpose: str, *, timeout_s: float = 60.0) -> Iterator[None]:
        """Hold the writers' lock, in a folder that is ready to be written.

        Raises:
            MachineError: another writer holds the lock for longer than `timeout_s`, or the folder cannot be written.
        """
        with writing(self._blobs):
            self._blobs.mkdir(parents=True, exist_ok=True)
        with locked(self.root / LOCK_FILE, purpose=purpose, timeout_s=timeout_s):
            with writing(self.root):
                remove_leftovers(self.root)
            if not (self.root / LAYOUT_FILE).exists():
                write_atomic(self.root / LAYOUT_FILE, LAYOUT_CONTENT)
            if not self.index():
                write_atomic(self.root / INDEX_FILE, dump_index(()))
            yield

    def add(self, contents: Sequence[bytes], entries: Sequence[Descriptor]) -> None:
        """Store blobs, then list entries, in one step. The caller holds the lock and knows that nothing is replaced.

        Raises:
            MachineError: the disk is full, or the folder cannot be written.
        """
        with writing(self._blobs):
            for content in (*contents, EMPTY_CONFIG):
                path = self._path(sha256(content))
                if not _holds(path, content):
                    write_atomic(path, content, sync=False)
            sync_folder(self._blobs)
        write_atomic(self.root / INDEX_FILE, dump_index([*self.index(), *entries]))


def _holds(path: Path, content: bytes) -> bool:
    try:
        return read_plain(path, limit=len(content)) == content
    except OSError:
        return False
