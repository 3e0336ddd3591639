"""An OCI image layout on disk: blobs by digest, and one index. https://github.com/opencontainers/image-spec (v1.1)

Invariants:
    - a blob never changes and is hashed on every read;
    - `index.json` is replaced in one rename, after all that it names is on the disk: a process that is killed at any
      point leaves the layout as it was, or as it was meant to be;
    - one writer at a time holds the lock; readers need none.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from hfreg.digests import is_digest, sha256
from hfreg.errors import RegistryError
from hfreg.files import TEMPORARY_PREFIX, locked, remove_leftovers, sync_folder, write_atomic, writing
from hfreg.registry import media_types
from hfreg.registry.oci import EMPTY_CONFIG, Descriptor, Manifest, dump_index, parse_index

LAYOUT_FILE = "oci-layout"
LAYOUT_CONTENT = b'{"imageLayoutVersion":"1.0.0"}'
INDEX_FILE = "index.json"
LOCK_FILE = ".hfreg-lock"
MAX_DOCUMENT_BYTES = 64 << 20


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
        if not path.exists():
            if any(not blob.name.startswith(TEMPORARY_PREFIX) for blob in self._blobs.glob("*")):
                raise RegistryError("is missing, but there are blobs", where=str(path))
            return ()
        if self._read(marker) != LAYOUT_CONTENT:
            raise RegistryError("not an OCI image layout 1.0.0 as hfreg writes it", where=str(marker))
        return parse_index(self._read(path), where=str(path))

    def _read(self, path: Path) -> bytes:
        try:
            if path.stat().st_size > MAX_DOCUMENT_BYTES:
                raise RegistryError("larger than any document of a registry", where=str(path))
            return path.read_bytes()
        except OSError as error:
            raise RegistryError(f"cannot be read: {error.strerror}", where=str(path)) from error

    def blob(self, descriptor: Descriptor) -> bytes:
        """The content that a descriptor names.

        Raises:
            RegistryError: it is not there, or it is other content.
        """
        path = self._path(descriptor.digest)
        what = descriptor.title or descriptor.media_type
        try:
            size = path.stat().st_size
            content = path.read_bytes() if size == descriptor.size else b""
        except FileNotFoundError:
            raise RegistryError(f"the blob of {what} is missing", where=str(path)) from None
        except OSError as error:
            raise RegistryError(f"the blob of {what} cannot be read: {error.strerror}", where=str(path)) from error
        if size != descriptor.size:
            raise RegistryError(f"the blob of {what} has {size} bytes instead of {descriptor.size}", where=str(path))
        if (digest := sha256(content)) != descriptor.digest:
            raise RegistryError(f"the blob of {what} was changed: its digest is now {digest}", where=str(path))
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
                if not path.exists() or path.read_bytes() != content:
                    write_atomic(path, content, sync=False)
            sync_folder(self._blobs)
        write_atomic(self.root / INDEX_FILE, dump_index([*self.index(), *entries]))
