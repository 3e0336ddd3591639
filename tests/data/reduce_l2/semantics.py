from hfreg.lang import Tensor, sqrt, sum


def reduce_l2(x: Tensor) -> Tensor:
    return sqrt(sum(x * x, 0, keepdims=False))
