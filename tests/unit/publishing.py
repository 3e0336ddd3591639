"""Op versions that are ready to be published: a package, made-up kernels, and passports for them."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric import ec

from hfreg.kernels.artifact import Kernel, KernelKey
from hfreg.ops.package import OpPackage, load_package
from hfreg.registry.artifact import OperatorArtifact, make_artifact
from hfreg.registry.registry import PassportBundles
from unit import signing
from unit.samples import UNARY, manifest_text, package_files, write_files

V3, V4 = "x86_64-v3", "x86_64-v4"


def load(
    *, name: str = "sample", version: str = "1.0.0", extra: Mapping[str, bytes] | None = None, body: str = UNARY
) -> OpPackage:
    """A package, loaded from a folder that is gone afterwards."""
    text = manifest_text(body, name=name, version=version)
    files = package_files(text, name=name, version=version) | dict(extra or {})
    with tempfile.TemporaryDirectory() as folder:
        return load_package(write_files(Path(folder) / name, files))


def kernels_of(package: OpPackage, *targets: str, content: bytes = b"kernel") -> list[Kernel]:
    """One made-up kernel for each type and target."""
    return [
        Kernel(
            KernelKey(package.name, (("T", kind),), "general", target, "halide"),
            b"/".join((content, package.name.encode(), kind.encode(), target.encode())),
        )
        for target in targets
        for kind in package.manifest.types["T"]
    ]


def artifact_of(package: OpPackage, targets: Sequence[str] = (V3,), *, content: bytes = b"kernel") -> OperatorArtifact:
    runtimes = {target: b"runtime of " + target.encode() for target in targets}
    return make_artifact(package, kernels_of(package, *targets, content=content), runtimes)


def passports_of(
    artifact: OperatorArtifact, *, key: ec.EllipticCurvePrivateKey = signing.KEY, verdict: str = "passed"
) -> list[PassportBundles]:
    """A valid passport for each target, whose artifacts are worked out from the layers' contents."""
    layers = {descriptor.title: signing.digest(content) for descriptor, content in artifact.layers}
    found = []
    for target in sorted({entry.key.target for entry in artifact.config.kernels}):
        kernels = {name: value for name, value in layers.items() if name.endswith(f".{target}.halide")}
        shared = {name: layers[name] for name in ("source.tar", f"runtime.{target}.so")}
        records = [
            signing.kernel_record(name, value, verdict=verdict, types={"T": name.split(".")[1]})
            for name, value in kernels.items()
        ]
        bundles = signing.passport(
            kernels | shared,
            records,
            key=key,
            reference=f"{artifact.config.name}@{artifact.config.version}",
            target=target,
            package=artifact.config.package,
        )
        found.append(PassportBundles(target, bundles))
    return found
