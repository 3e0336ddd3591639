from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hfreg.errors import HfregError, MachineError, RegistryError
from hfreg.registry import media_types
from hfreg.registry.layout import INDEX_FILE, LAYOUT_FILE, LOCK_FILE, Layout
from hfreg.registry.oci import EMPTY_CONFIG, Descriptor, Manifest
from hfreg.registry.passports import verify_version
from hfreg.registry.registry import Registry
from unit import publishing, signing


def small_manifest(*contents: bytes, name: str = "a") -> Manifest:
    layers = tuple(Descriptor.of(content, "application/x") for content in contents)
    config = Descriptor.of(EMPTY_CONFIG, media_types.EMPTY)
    return Manifest("application/z", config, layers, {media_types.TITLE: name})


def add(layout: Layout, *contents: bytes, name: str = "a") -> Manifest:
    """Store a manifest with these layers under a name."""
    manifest = small_manifest(*contents, name=name)
    with layout.writing("a test"):
        layout.add([*contents, manifest.dump()], [manifest.descriptor(ref_name=f"{name}:1")])
    return manifest


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return Layout(tmp_path / "registry")


def put_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def files(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def blob_path(layout: Layout, content: bytes) -> Path:
    return layout.root / "blobs" / "sha256" / signing.digest(content).removeprefix("sha256:")


def test_a_layout_that_is_not_there_is_empty_and_stays_away(layout: Layout) -> None:
    assert layout.index() == ()
    assert not layout.root.exists()


def test_the_files_are_those_of_an_oci_image_layout(layout: Layout) -> None:
    # OCI image specification 1.1, image-layout.md.
    manifest = add(layout, b"content")
    root = layout.root
    assert (root / "oci-layout").read_bytes() == b'{"imageLayoutVersion":"1.0.0"}'
    index = json.loads((root / "index.json").read_bytes())
    assert index["schemaVersion"] == 2
    assert index["manifests"] == [
        {
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "digest": signing.digest(manifest.dump()),
            "size": len(manifest.dump()),
            "artifactType": "application/z",
            "annotations": {"org.opencontainers.image.title": "a", "org.opencontainers.image.ref.name": "a:1"},
        }
    ]
    for content in (b"content", manifest.dump(), b"{}"):
        assert blob_path(layout, content).read_bytes() == content


def test_what_was_added_is_read_back(layout: Layout) -> None:
    manifest = add(layout, b"one", b"two")
    (entry,) = layout.index()
    assert layout.manifest(entry) == manifest
    assert [layout.blob(layer) for layer in manifest.layers] == [b"one", b"two"]
    assert layout.blob(manifest.config) == b"{}"


def test_adding_keeps_what_is_there(layout: Layout) -> None:
    add(layout, b"one", name="a")
    before = {name: content for name, content in files(layout.root).items() if name.startswith("blobs")}
    add(layout, b"one", b"two", name="b")
    assert [entry.title for entry in layout.index()] == ["a", "b"]
    after = files(layout.root)
    assert all(after[name] == content for name, content in before.items())


def test_the_same_additions_in_another_order_give_the_same_files(tmp_path: Path) -> None:
    for place, order in (("one", "ab"), ("two", "ba")):
        for name in order:
            add(Layout(tmp_path / place), name.encode(), name=name)
    found = [files(tmp_path / place) for place in ("one", "two")]
    for tree in found:
        del tree[LOCK_FILE]  # names the last writer
    assert found[0] == found[1]


def test_an_empty_layout_is_made_ready_by_its_first_writer(layout: Layout) -> None:
    with layout.writing("a test"):
        assert set(files(layout.root)) == {LAYOUT_FILE, INDEX_FILE, LOCK_FILE}
    assert layout.index() == ()


# Damage


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda path: path.unlink(), "the blob of application/x is missing"),
        (lambda path: path.write_bytes(b"contend"), "was changed: its digest is now sha256:"),
        (lambda path: path.write_bytes(b"conten"), "has 6 bytes instead of 7"),
        (lambda path: path.write_bytes(b""), "has 0 bytes instead of 7"),
        (lambda path: path.write_bytes(b"content" * 9), "has 63 bytes, expected at most 7"),
        (lambda path: (path.unlink(), path.mkdir()), "the blob of application/x"),
        (lambda path: (path.unlink(), path.symlink_to("nowhere")), "the blob of application/x is missing"),
        (put_pipe, "not a plain file"),
        (lambda path: (path.unlink(), path.symlink_to("/dev/zero")), "not a plain file"),
        (lambda path: os.truncate(path, 1 << 40), "has 1099511627776 bytes, expected at most 7"),
    ],
    ids=["missing", "changed", "shorter", "empty", "longer", "folder", "broken link", "pipe", "device", "1 TiB"],
)
def test_a_blob_is_hashed_on_every_read(layout: Layout, damage: Callable[[Path], object], message: str) -> None:
    manifest = add(layout, b"content")
    assert layout.blob(manifest.layers[0]) == b"content"
    damage(blob_path(layout, b"content"))
    with pytest.raises(RegistryError, match=message) as caught:
        layout.blob(manifest.layers[0])
    assert caught.value.where == str(blob_path(layout, b"content"))


@pytest.mark.parametrize("digest", ["sha256:../../../etc/passwd", "sha512:" + "a" * 128, "", "sha256:" + "A" * 64])
def test_a_digest_cannot_name_a_path_elsewhere(layout: Layout, digest: str) -> None:
    with pytest.raises(RegistryError, match="is not a SHA-256 digest"):
        layout.blob(Descriptor("application/x", digest, 1))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (INDEX_FILE, None, "is missing, but there are blobs"),
        (INDEX_FILE, b"", "not valid JSON"),
        (INDEX_FILE, b"{}", "not an OCI image index"),
        (LAYOUT_FILE, None, "cannot be read: No such file"),
        (LAYOUT_FILE, b'{"imageLayoutVersion":"1.0.1"}', "not an OCI image layout 1.0.0"),
        (LAYOUT_FILE, b'{"imageLayoutVersion": "1.0.0"}', "not an OCI image layout 1.0.0"),
        (LAYOUT_FILE, b"", "not an OCI image layout 1.0.0"),
    ],
)
def test_a_damaged_or_missing_document_is_reported(
    layout: Layout, name: str, content: bytes | None, message: str
) -> None:
    add(layout, b"content")
    path = layout.root / name
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(RegistryError, match=message) as caught:
        layout.index()
    assert caught.value.where == str(path)


def test_a_damaged_layout_is_not_written_to(layout: Layout) -> None:
    add(layout, b"content")
    (layout.root / INDEX_FILE).unlink()
    before = files(layout.root)
    with pytest.raises(RegistryError, match="is missing, but there are blobs"), layout.writing("a test"):
        pytest.fail("nothing may be written")
    del before[LOCK_FILE]
    assert {name: content for name, content in files(layout.root).items() if name != LOCK_FILE} == before


def test_a_document_that_is_too_large_is_not_read(layout: Layout) -> None:
    add(layout, b"content")
    with (layout.root / INDEX_FILE).open("r+b") as file:
        file.truncate((64 << 20) + 1)  # a sparse file
    with pytest.raises(RegistryError, match="it has 67108865 bytes, expected at most 67108864"):
        layout.index()


@pytest.mark.parametrize("name", [INDEX_FILE, LAYOUT_FILE])
@pytest.mark.parametrize(
    ("replace", "message"),
    [
        (os.mkfifo, "not a plain file"),
        (lambda path: path.symlink_to("/dev/zero"), "not a plain file"),
        (lambda path: path.mkdir(), "cannot be read"),
        (lambda path: path.symlink_to(path.name), "cannot be read: Too many levels of symbolic links"),
    ],
    ids=["pipe", "device", "folder", "loop"],
)
def test_a_document_that_is_no_plain_file_is_damage(
    layout: Layout, name: str, replace: Callable[[Path], None], message: str
) -> None:
    add(layout, b"content")
    (layout.root / name).unlink()
    replace(layout.root / name)
    with pytest.raises(RegistryError, match=message) as caught:
        layout.index()
    assert caught.value.where == str(layout.root / name)


@pytest.mark.parametrize(
    ("media_type", "limit"),
    [(media_types.MANIFEST, 4 << 20), (media_types.BUNDLE, 4 << 20), ("application/x", 128 << 20)],
)
def test_a_blob_larger_than_any_of_its_kind_is_not_read(layout: Layout, media_type: str, limit: int) -> None:
    add(layout, b"content")
    path = blob_path(layout, b"content")
    os.truncate(path, limit + 1)
    with pytest.raises(RegistryError, match=f"has {limit + 1} bytes, more than any of its kind"):
        layout.blob(Descriptor(media_type, signing.digest(b"content"), limit + 1))


def test_a_pipe_in_place_of_a_blob_is_replaced_by_the_next_writer(layout: Layout) -> None:
    add(layout, b"content", name="a")
    path = blob_path(layout, b"content")
    put_pipe(path)
    add(layout, b"content", name="b")
    assert path.is_file()
    assert path.read_bytes() == b"content"


def test_an_index_that_describes_a_manifest_otherwise_is_refused(layout: Layout) -> None:
    manifest = add(layout, b"content")
    (entry,) = layout.index()
    assert layout.manifest(entry) == manifest
    for changed in (
        Descriptor(entry.media_type, entry.digest, entry.size, entry.artifact_type, entry.annotations | {"x": "y"}),
        Descriptor(entry.media_type, entry.digest, entry.size, "application/other", entry.annotations),
        Descriptor("application/other", entry.digest, entry.size, entry.artifact_type, entry.annotations),
    ):
        with pytest.raises(RegistryError, match="otherwise than the manifest itself"):
            layout.manifest(changed)


# Every single byte


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A registry with one op version and its passport."""
    root = tmp_path_factory.mktemp("published")
    artifact = publishing.artifact_of(publishing.load())
    assert Registry(root).publish(artifact, publishing.passports_of(artifact)) == "published"
    return root


def read_layout(root: Path) -> None:
    """Read all that the index leads to."""
    layout = Layout(root)
    for entry in layout.index():
        manifest = layout.manifest(entry)
        for descriptor in (manifest.config, *manifest.layers):
            layout.blob(descriptor)


def read_registry(root: Path) -> None:
    """Verify all that a registry offers, the way its users do."""
    for version in Registry(root).all_versions():
        verify_version(version, signing.TRUSTED)


def read_everything(root: Path) -> None:
    """Both: the empty config of a passport is read by nobody who only verifies."""
    read_registry(root)
    read_layout(root)


def unnoticed(path: Path, read: Callable[[Path], None], root: Path, flip: int, *, step: int = 1) -> list[str]:
    """The bytes whose change nothing refuses, each with what stands before it; the file is put back."""
    content = path.read_bytes()
    passed, messages = [], []
    try:
        for position in range(0, len(content), step):
            path.write_bytes(content[:position] + bytes([content[position] ^ flip]) + content[position + 1 :])
            try:
                read(root)
            except HfregError as error:
                messages.append(str(error))
            else:
                passed.append(f"byte {position}, the last one of {content[max(0, position - 24) : position + 1]!r}")
    finally:
        path.write_bytes(content)
    read(root)
    assert all(messages)
    return passed


# 0x01 makes another letter or digit of most characters, 0x20 changes between capitals and small letters.
FLIPS = pytest.mark.parametrize("flip", [0x01, 0x20])


@FLIPS
def test_every_changed_byte_of_the_index_is_refused(published: Path, flip: int) -> None:
    assert unnoticed(published / INDEX_FILE, read_registry, published, flip) == []


def test_every_changed_byte_of_the_index_is_refused_by_whoever_reads_all_of_the_layout(published: Path) -> None:
    # Only the name of an entry is the index's own to give: `Registry.versions` holds it against the annotations.
    path = published / INDEX_FILE
    name_at = path.read_bytes().index(b'"sample:1.0.0"') + 1
    name = {f"byte {position}" for position in range(name_at, name_at + len("sample:1.0.0"))}
    passed = unnoticed(path, read_layout, published, 0x01)
    assert {entry.partition(",")[0] for entry in passed} <= name


def test_every_changed_byte_of_the_layout_file_is_refused(published: Path) -> None:
    assert unnoticed(published / LAYOUT_FILE, read_registry, published, 0x01) == []


def blobs_of(root: Path) -> dict[str, Path]:
    """The blobs that the index leads to, each under a name that says what it is."""
    layout = Layout(root)
    found: dict[str, Path] = {}
    for entry in layout.index():
        manifest = layout.manifest(entry)
        kind = entry.artifact_type.split(".")[-2]
        descriptors = [("manifest", entry), ("config", manifest.config)]
        descriptors += [(layer.title or f"bundle {i}", layer) for i, layer in enumerate(manifest.layers)]
        for name, descriptor in descriptors:
            found[f"{kind} {name}"] = root / "blobs" / "sha256" / descriptor.digest.removeprefix("sha256:")
    return found


ALL = ["operator manifest", "passport manifest", "operator sample.float32.general.x86_64-v3.halide"]
SAMPLED = {
    "operator config": 13,
    "operator source.tar": 499,
    "operator golden.tar": 499,
    "operator runtime.x86_64-v3.so": 1,
    "operator sample.float16.general.x86_64-v3.halide": 1,
    "passport bundle 0": 97,
    "passport bundle 1": 97,
}
"""Hashing makes no difference between bytes; every so many are tried."""


def test_the_tests_of_changed_bytes_cover_every_blob(published: Path) -> None:
    assert set(blobs_of(published)) == {*ALL, *SAMPLED, "passport config"}


@pytest.mark.parametrize(("name", "read"), list(zip(ALL, [read_layout, read_layout, read_registry], strict=True)))
def test_every_changed_byte_of_a_manifest_and_a_kernel_is_refused(
    published: Path, name: str, read: Callable[[Path], None]
) -> None:
    assert unnoticed(blobs_of(published)[name], read, published, 0x01) == []


@pytest.mark.parametrize("name", ALL[:2])
def test_changed_bytes_all_over_a_manifest_are_refused_by_whoever_verifies(published: Path, name: str) -> None:
    assert unnoticed(blobs_of(published)[name], read_registry, published, 0x80, step=29) == []


@pytest.mark.parametrize(("name", "step"), SAMPLED.items())
def test_changed_bytes_all_over_the_other_blobs_are_refused(published: Path, name: str, step: int) -> None:
    assert unnoticed(blobs_of(published)[name], read_registry, published, 0x80, step=step) == []


def test_a_changed_config_of_a_passport_is_noticed_by_whoever_reads_all_of_the_layout(published: Path) -> None:
    assert unnoticed(blobs_of(published)["passport config"], read_layout, published, 0x01) == []


def test_every_missing_file_is_noticed(published: Path) -> None:
    for path in sorted(published.rglob("*")):
        if path.is_file() and path.name != LOCK_FILE:
            content = path.read_bytes()
            path.unlink()
            with pytest.raises(RegistryError) as caught:
                read_everything(published)
            assert str(path) in str(caught.value)
            path.write_bytes(content)
    read_registry(published)


# Writing


@contextlib.contextmanager
def writer(root: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the writers' lock, in the middle of its work."""
    program = (
        "import sys, pathlib\n"
        "from hfreg.registry.layout import Layout\n"
        "layout = Layout(pathlib.Path(sys.argv[1]))\n"
        "with layout.writing('publishing b@2.0.0'):\n"
        "    (layout.root / 'blobs/sha256/.tmp-half').write_bytes(b'half')\n"
        "    (layout.root / '.tmp-index').write_bytes(b'half')\n"
        "    print('ready', flush=True)\n"
        "    sys.stdin.read()\n"
    )
    command = [sys.executable, "-c", program, str(root)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


def test_one_writer_at_a_time_and_readers_need_no_lock(layout: Layout) -> None:
    manifest = add(layout, b"content")
    with writer(layout.root) as process:
        (entry,) = layout.index()
        assert layout.manifest(entry) == manifest
        with (
            pytest.raises(MachineError, match=f"by process {process.pid}: publishing b@2.0.0") as caught,
            layout.writing("a test", timeout_s=0.05),
        ):
            pytest.fail("the lock is held")
        assert caught.value.where == str(layout.root / LOCK_FILE)


def test_what_a_killed_writer_left_is_removed_by_the_next_one(layout: Layout) -> None:
    add(layout, b"content")
    before = files(layout.root)
    with writer(layout.root) as process:
        process.kill()
        process.wait()
        leftovers = {"blobs/sha256/.tmp-half", ".tmp-index"}
        assert set(files(layout.root)) == set(before) | leftovers
        assert len(layout.index()) == 1
        with layout.writing("a test", timeout_s=0):
            assert set(files(layout.root)) == set(before)


def test_leftovers_alone_are_no_blobs(layout: Layout) -> None:
    (layout.root / "blobs" / "sha256").mkdir(parents=True)
    (layout.root / "blobs" / "sha256" / ".tmp-half").write_bytes(b"half")
    assert layout.index() == ()


@pytest.mark.parametrize("failing", range(1, 8))
def test_a_writer_that_fails_anywhere_leaves_the_layout_as_it_was(
    layout: Layout, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    # Publishing renames three blobs and the index; at each of these steps, before or after, the index names only what
    # is there. The steps beyond the last one do not fail, and then everything is there.
    add(layout, b"old", name="a")
    steps = 0
    original = Path.replace

    def replace(self: Path, target: Path) -> Path:
        nonlocal steps
        steps += 1
        if steps == failing:
            raise KeyboardInterrupt
        return original(self, target)

    with monkeypatch.context() as patch, contextlib.suppress(KeyboardInterrupt):
        patch.setattr(Path, "replace", replace)
        add(layout, b"new", b"newer", name="b")
    read_layout(layout.root)
    assert [entry.title for entry in layout.index()] == (["a"] if steps == failing else ["a", "b"])
    add(layout, b"new", b"newer", name="c")
    read_layout(layout.root)


def test_a_damaged_blob_that_is_added_again_is_mended(layout: Layout) -> None:
    add(layout, b"content", name="a")
    blob_path(layout, b"content").write_bytes(b"damaged")
    add(layout, b"content", name="b")
    read_layout(layout.root)


def test_a_registry_that_cannot_be_written_is_a_fault_of_the_machine(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(MachineError), Layout(tmp_path / "file").writing("a test", timeout_s=0):
        pytest.fail("a file is no folder")
