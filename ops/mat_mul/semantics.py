"""MatMul, on views with one leading axis or none."""

from hfreg.lang import Tensor, contract


def mat_mul(a: Tensor, b: Tensor) -> Tensor:
    return contract("bmk,bkn->bmn", a, b) if a.rank == 3 else contract("mk,kn->mn", a, b)
