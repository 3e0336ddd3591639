from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from hfreg.errors import HfregError, RegistryError, UsageError
from hfreg.registry import media_types
from hfreg.registry.layout import Layout
from hfreg.registry.oci import EMPTY_CONFIG, Descriptor, Manifest
from hfreg.registry.registry import Registry, check_same, default_registry, ref_name
from hfreg.versions import Reference
from unit import publishing, signing
from unit.publishing import V3, V4
from unit.samples import package_files


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    return Registry(tmp_path / "registry")


def publish(registry: Registry, *, name: str = "sample", version: str = "1.0.0", **more: bytes) -> str:
    extra = {key.replace("_", "."): value for key, value in more.items()}
    artifact = publishing.artifact_of(publishing.load(name=name, version=version, extra=extra))
    return registry.publish(artifact, publishing.passports_of(artifact))


def resolve(registry: Registry, text: str) -> str:
    return registry.resolve(Reference.parse(text)).reference


def tree(root: Path) -> dict[str, bytes]:
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file() and p.name[0] != "."}


def test_an_op_version_is_published_and_read_back(registry: Registry) -> None:
    assert publish(registry) == "published"
    version = registry.resolve(Reference.parse("sample"))
    assert version.reference == "sample@1.0.0"
    assert version.files() == package_files()
    assert version.op_manifest.name == "sample"
    assert version.config.package == publishing.load().digest
    kernel = f"sample.float32.general.{V3}.halide"
    assert version.layer(kernel) == b"kernel/sample/float32/x86_64-v3"
    with pytest.raises(RegistryError, match="has no layer 'other'"):
        version.layer("other")


def test_a_passport_refers_to_its_version(registry: Registry) -> None:
    artifact = publishing.artifact_of(publishing.load(), [V3, V4])
    passports = publishing.passports_of(artifact)
    registry.publish(artifact, passports[::-1])
    publish(registry, version="1.0.1")
    found = registry.resolve(Reference.parse("sample@1.0.0")).passports()
    assert found == passports  # by target, and not those of the other version


def test_publishing_the_same_again_changes_nothing(registry: Registry) -> None:
    assert publish(registry) == "published"
    before = tree(registry.layout.root)
    assert publish(registry) == "already there"
    assert tree(registry.layout.root) == before


def test_other_content_under_a_published_version_is_refused_with_both_digests(registry: Registry) -> None:
    publish(registry)
    before = tree(registry.layout.root)
    was, now = (
        signing.digest(publishing.artifact_of(publishing.load(extra=extra)).layers[0][1])[7:19]
        for extra in ({}, {"notes.md": b"changed"})
    )
    with pytest.raises(RegistryError) as caught:
        publish(registry, notes_md=b"changed")
    assert caught.value.message == f"is published with other content: source.tar is {was} there and {now} here"
    assert caught.value.where == "sample@1.0.0"
    assert "raise the version" in caught.value.hint
    assert tree(registry.layout.root) == before


@pytest.mark.parametrize(
    ("targets", "content", "title"),
    [
        ([V3], b"other", f"sample.float16.general.{V3}.halide"),
        ([V3, V4], b"kernel", f"sample.float16.general.{V4}.halide"),
        ([], b"kernel", f"sample.float16.general.{V3}.halide"),
    ],
    ids=["another kernel", "one more target", "a target less"],
)
def test_the_first_thing_that_differs_is_named(
    registry: Registry, targets: list[str], content: bytes, title: str
) -> None:
    publish(registry)
    existing = registry.published("sample", "1.0.0")
    assert existing is not None
    other = publishing.artifact_of(publishing.load(), targets, content=content)
    with pytest.raises(RegistryError, match=f"{title} is .* there and .* here"):
        check_same(existing, other)
    check_same(existing, publishing.artifact_of(publishing.load()))


def test_versions_are_listed_by_name_and_in_their_order(registry: Registry) -> None:
    for version in ("1.10.0", "1.9.0", "1.0.0-rc.1", "1.0.0"):
        publish(registry, version=version)
    publish(registry, name="another")
    listed = {name: list(map(str, versions)) for name, versions in registry.versions().items()}
    assert listed == {"another": ["1.0.0"], "sample": ["1.0.0-rc.1", "1.0.0", "1.9.0", "1.10.0"]}
    assert [version.reference for version in registry.all_versions()] == [
        "another@1.0.0",
        "sample@1.0.0-rc.1",
        "sample@1.0.0",
        "sample@1.9.0",
        "sample@1.10.0",
    ]


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Registry:
    registry = Registry(tmp_path_factory.mktemp("several"))
    for version in ("0.1.0", "0.2.3", "1.0.0", "1.2.0", "1.2.7", "1.10.0", "2.0.0-rc.1"):
        publish(registry, version=version)
    return registry


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("sample", "1.10.0"),
        ("sample@1", "1.10.0"),
        ("sample@^1", "1.10.0"),
        ("sample@^1.2.1", "1.10.0"),
        ("sample@~1.2", "1.2.7"),
        ("sample@1.2", "1.2.7"),
        ("sample@1.2.0", "1.2.0"),
        ("sample@^0.1", "0.1.0"),
        ("sample@^0", "0.2.3"),
        ("sample@2.0.0-rc.1", "2.0.0-rc.1"),
    ],
)
def test_a_reference_resolves_to_the_highest_version_that_it_admits(several: Registry, text: str, version: str) -> None:
    assert resolve(several, text) == f"sample@{version}"


@pytest.mark.parametrize("text", ["sample@^2", "sample@3", "sample@1.2.1", "sample@~0.3", "sample@^1.11"])
def test_where_no_version_is_admitted_the_published_ones_are_named(several: Registry, text: str) -> None:
    with pytest.raises(UsageError, match=f"no version for {text.replace('^', '.')}") as caught:
        resolve(several, text)
    assert caught.value.hint == "published: 0.1.0, 0.2.3, 1.0.0, 1.2.0, 1.2.7, 1.10.0, 2.0.0-rc.1"


def test_an_operator_that_is_not_there_is_wrong_use(several: Registry, registry: Registry) -> None:
    with pytest.raises(UsageError, match="no operator 'other'") as caught:
        resolve(several, "other")
    assert caught.value.hint == "it has sample"
    with pytest.raises(UsageError, match="no operator 'other'") as caught:
        resolve(registry, "other")
    assert caught.value.hint == "it has nothing"


def test_one_exact_version_is_there_or_not(several: Registry) -> None:
    found = several.published("sample", "1.2.0")
    assert found is not None and found.reference == "sample@1.2.0"
    assert several.published("sample", "1.2.1") is None
    assert several.published("other", "1.2.0") is None


def test_publishing_happens_whole_or_not_at_all(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(registry, version="0.9.0")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", fail)
        with pytest.raises(HfregError, match="No space left"):
            publish(registry)
    assert list(map(str, registry.versions()["sample"])) == ["0.9.0"]
    assert publish(registry) == "published"
    assert list(map(str, registry.versions()["sample"])) == ["0.9.0", "1.0.0"]


def test_the_registry_is_where_it_is_said_to_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("mine", "other"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("HFREG_REGISTRY", str(tmp_path / "mine"))
    assert default_registry() == tmp_path / "mine"
    assert Registry.open().layout.root == tmp_path / "mine"
    assert Registry.open(tmp_path / "other").layout.root == tmp_path / "other"
    monkeypatch.delenv("HFREG_REGISTRY")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert default_registry() == tmp_path / "hfreg"
    assert Registry.open().layout.root == tmp_path / "hfreg"


@pytest.mark.parametrize("make", [Path.touch, lambda path: None, lambda path: path.symlink_to(path)])
def test_a_registry_that_is_named_is_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[Path], None]
) -> None:
    path = tmp_path / "named"
    make(path)
    with pytest.raises(UsageError, match="there is no registry") as caught:
        Registry.open(path)
    assert caught.value.where == str(path)
    monkeypatch.setenv("HFREG_REGISTRY", str(path))
    with pytest.raises(UsageError, match="there is no registry"):
        Registry.open()


def test_the_name_in_an_index_is_name_and_version() -> None:
    assert ref_name("softmax", "1.2.0") == "softmax:1.2.0"


# A registry that somebody else wrote


def add(registry: Registry, manifest: Manifest, *contents: bytes, name: str = "") -> None:
    with registry.layout.writing("an attack"):
        registry.layout.add([*contents, manifest.dump()], [manifest.descriptor(ref_name=name)])


def operator_manifest(**changes: object) -> tuple[Manifest, list[bytes]]:
    artifact = publishing.artifact_of(publishing.load())
    fields = {
        "artifact_type": media_types.OPERATOR,
        "config": artifact.manifest.config,
        "layers": artifact.manifest.layers,
        "annotations": artifact.manifest.annotations,
    } | changes
    return Manifest(**fields), artifact.contents  # type: ignore[arg-type]


def test_an_entry_under_another_name_is_refused(registry: Registry) -> None:
    manifest, contents = operator_manifest()
    add(registry, manifest, *contents, name="other:1.0.0")
    with pytest.raises(RegistryError, match="an entry of the index is misnamed"):
        registry.versions()


@pytest.mark.parametrize(
    "annotations",
    [
        {media_types.TITLE: "sample", media_types.VERSION: "not a version"},
        {media_types.TITLE: "sample", media_types.VERSION: ""},
        {},
    ],
    ids=["no version", "an empty version", "no annotations"],
)
def test_an_entry_whose_version_is_none_is_damage_and_not_wrong_use(
    registry: Registry, annotations: dict[str, str]
) -> None:
    # `versions` raises RegistryError where the index is damaged; the user asked for nothing wrong.
    manifest, contents = operator_manifest(annotations=annotations)
    name = f"{annotations.get(media_types.TITLE, '')}:{annotations.get(media_types.VERSION, '')}"
    add(registry, manifest, *contents, name=name)
    with pytest.raises(RegistryError):
        registry.versions()


@pytest.mark.parametrize("name", ["../sample", "Sample", "sample/x", "<b>"])
def test_an_entry_whose_name_is_no_operators_is_refused(registry: Registry, name: str) -> None:
    # Names become paths of pages.
    manifest, contents = operator_manifest(annotations={media_types.TITLE: name, media_types.VERSION: "1.0.0"})
    add(registry, manifest, *contents, name=f"{name}:1.0.0")
    with pytest.raises(RegistryError, match="an entry of the index is misnamed"):
        registry.versions()


@pytest.mark.parametrize("kind", ["application/vnd.hfreg.operatos.v1", media_types.PASSPORT, ""])
def test_an_entry_of_another_kind_does_not_hide_a_version(registry: Registry, kind: str) -> None:
    publish(registry)
    manifest, contents = operator_manifest(artifact_type=kind, annotations={"k": "v"})
    add(registry, manifest, *contents, name="sample:1.0.1")
    with pytest.raises(RegistryError, match="an entry of the index is misnamed"):
        resolve(registry, "sample")


def test_two_entries_for_one_version_are_refused(registry: Registry) -> None:
    # Which of the two would be served? A published version is one artifact.
    publish(registry)
    manifest, contents = operator_manifest(layers=operator_manifest()[0].layers[:-1])
    add(registry, manifest, *contents, name="sample:1.0.0")
    with pytest.raises(RegistryError):
        registry.versions()


def test_a_config_that_names_another_version_is_refused(registry: Registry) -> None:
    manifest, contents = operator_manifest(annotations={media_types.TITLE: "sample", media_types.VERSION: "2.0.0"})
    add(registry, manifest, *contents, name="sample:2.0.0")
    with pytest.raises(RegistryError, match="the config and the manifest name different versions"):
        resolve(registry, "sample@2.0.0")


@pytest.mark.parametrize("change", ["less", "more", "other"])
def test_layers_that_the_config_does_not_promise_are_refused(registry: Registry, change: str) -> None:
    layers = operator_manifest()[0].layers
    extra = Descriptor.of(b"extra", media_types.KERNEL, annotations={media_types.TITLE: "extra"})
    swapped = Descriptor.of(b"extra", media_types.KERNEL, annotations={media_types.TITLE: layers[2].title})
    changed = {"less": layers[:-1], "more": (*layers, extra), "other": (*layers[:2], swapped, *layers[3:])}[change]
    manifest, contents = operator_manifest(layers=changed)
    add(registry, manifest, *contents, b"extra", name="sample:1.0.0")
    with pytest.raises(RegistryError, match="the config and the layers of the artifact do not agree"):
        resolve(registry, "sample")


@pytest.mark.parametrize("change", ["before", "behind", "the same"])
def test_a_layer_that_is_there_twice_is_refused(registry: Registry, change: str) -> None:
    # Of two sources, one could be held against the passport and the other one be read.
    layers = operator_manifest()[0].layers
    other = Descriptor.of(b"extra", media_types.SOURCE, annotations={media_types.TITLE: "source.tar"})
    changed = {"before": (other, *layers), "behind": (*layers, other), "the same": (*layers, layers[0])}[change]
    manifest, contents = operator_manifest(layers=changed)
    add(registry, manifest, *contents, b"extra", name="sample:1.0.0")
    with pytest.raises(RegistryError, match="the config and the layers of the artifact do not agree"):
        resolve(registry, "sample")


def refused_layers(registry: Registry, layers: list[Descriptor]) -> None:
    manifest, contents = operator_manifest(layers=tuple(layers))
    add(registry, manifest, *contents, name="sample:1.0.0")
    with pytest.raises(RegistryError, match="the config and the layers of the artifact do not agree"):
        resolve(registry, "sample")


@pytest.mark.parametrize("place", range(5))
def test_a_layer_of_another_media_type_is_refused(registry: Registry, place: int) -> None:
    layers = list(operator_manifest()[0].layers)
    layers[place] = replace(layers[place], media_type="application/x")
    refused_layers(registry, layers)


@pytest.mark.parametrize(("one", "other"), [(0, 1), (2, 3), (1, 4)])
def test_layers_in_another_order_are_refused(registry: Registry, one: int, other: int) -> None:
    layers = list(operator_manifest()[0].layers)
    layers[one], layers[other] = layers[other], layers[one]
    refused_layers(registry, layers)


def test_a_config_of_another_media_type_is_refused(registry: Registry) -> None:
    config = replace(operator_manifest()[0].config, media_type="application/x")
    manifest, contents = operator_manifest(config=config)
    add(registry, manifest, *contents, name="sample:1.0.0")
    with pytest.raises(RegistryError, match="name different versions or media types"):
        resolve(registry, "sample")


@pytest.mark.parametrize("title", ["source.tar", "golden.tar"])
def test_an_artifact_without_its_source_is_refused(registry: Registry, title: str) -> None:
    layers = tuple(layer for layer in operator_manifest()[0].layers if layer.title != title)
    manifest, contents = operator_manifest(layers=layers)
    add(registry, manifest, *contents, name="sample:1.0.0")
    with pytest.raises(RegistryError, match="do not agree"):
        resolve(registry, "sample")


def passport_manifest(subject: Descriptor | None, annotations: dict[str, str]) -> Manifest:
    return Manifest(
        artifact_type=media_types.PASSPORT,
        config=Descriptor.of(EMPTY_CONFIG, media_types.EMPTY),
        layers=(),
        annotations=annotations,
        subject=subject,
    )


def test_a_passport_that_refers_to_nothing_is_refused(registry: Registry) -> None:
    publish(registry)
    add(registry, passport_manifest(None, {media_types.TARGET: V4}))
    with pytest.raises(RegistryError, match="a passport that refers to nothing"):
        registry.resolve(Reference.parse("sample")).passports()


def test_a_passport_without_a_target_is_refused(registry: Registry) -> None:
    publish(registry)
    subject = registry.resolve(Reference.parse("sample")).entry
    add(registry, passport_manifest(Descriptor(subject.media_type, subject.digest, subject.size), {}))
    with pytest.raises(RegistryError):
        registry.resolve(Reference.parse("sample")).passports()


@pytest.mark.parametrize("change", ["annotation", "layer", "config", "subject"])
def test_a_passport_in_another_form_is_refused(registry: Registry, change: str) -> None:
    artifact = publishing.artifact_of(publishing.load())
    registry.publish(artifact, [])
    subject = registry.resolve(Reference.parse("sample")).entry
    plain = Descriptor(subject.media_type, subject.digest, subject.size)
    (bundles,) = publishing.passports_of(artifact)
    honest = replace(
        passport_manifest(plain, {media_types.TARGET: V3}),
        layers=tuple(Descriptor.of(bundle, media_types.BUNDLE) for bundle in bundles.bundles),
    )
    changed = {
        "annotation": replace(honest, annotations=honest.annotations | {"k": "v"}),
        "layer": replace(honest, layers=(replace(honest.layers[0], media_type="application/x"), honest.layers[1])),
        "config": replace(honest, config=Descriptor.of(EMPTY_CONFIG, "application/x")),
        "subject": replace(honest, subject=replace(plain, annotations={"k": "v"})),
    }[change]
    add(registry, changed, *bundles.bundles)
    with pytest.raises(RegistryError, match="a passport that is not in the one form"):
        registry.resolve(Reference.parse("sample")).passports()


def test_a_passport_of_something_else_is_passed_over(registry: Registry) -> None:
    publish(registry)
    other = Descriptor(media_types.MANIFEST, "sha256:" + "0" * 64, 1)
    add(registry, passport_manifest(other, {media_types.TARGET: V4}))
    found = registry.resolve(Reference.parse("sample")).passports()
    assert [passport.target for passport in found] == [V3]


def test_the_index_lists_referrers_without_a_name(registry: Registry) -> None:
    publish(registry)
    index = json.loads((registry.layout.root / "index.json").read_bytes())
    operator, passport = index["manifests"]
    assert operator["artifactType"] == "application/vnd.hfreg.operator.v1"
    assert passport["artifactType"] == "application/vnd.hfreg.passport.v1"
    assert passport["annotations"] == {"dev.hfreg.target": V3}
    manifest = Layout(registry.layout.root).manifest(registry.layout.index()[1])
    assert manifest.subject is not None
    assert manifest.subject.digest == operator["digest"]
    assert [layer.media_type for layer in manifest.layers] == ["application/vnd.dev.sigstore.bundle.v0.3+json"] * 2
