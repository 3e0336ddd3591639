"""The names of what the registry stores. `registry/layout.md` specifies each."""

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
EMPTY = "application/vnd.oci.empty.v1+json"

OPERATOR = "application/vnd.hfreg.operator.v1"
OPERATOR_CONFIG = "application/vnd.hfreg.operator.config.v1+json"
SOURCE = "application/vnd.hfreg.source.v1.tar"
GOLDEN = "application/vnd.hfreg.golden.v1.tar"
KERNEL = "application/vnd.hfreg.kernel.v1"
RUNTIME = "application/vnd.hfreg.runtime.v1"

PASSPORT = "application/vnd.hfreg.passport.v1"
BUNDLE = "application/vnd.dev.sigstore.bundle.v0.3+json"

TITLE = "org.opencontainers.image.title"
VERSION = "org.opencontainers.image.version"
REF_NAME = "org.opencontainers.image.ref.name"
TARGET = "dev.hfreg.target"
