import numpy as np


def reduce_l2(x):
    return np.sqrt(np.sum(x * x, axis=-1, keepdims=True))


def error_scale(x, *, expected):
    return (np.sqrt(x.shape[-1]) + 4) * np.abs(expected) + np.sqrt(x.shape[-1]) * 2.0 ** (-62 + 24)
