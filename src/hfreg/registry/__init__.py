"""The registry: an OCI image layout that only ever grows."""
