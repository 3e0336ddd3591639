"""A manifest with anything left out or changed is refused, or it can be sampled: no third way, and no crash."""

from __future__ import annotations

import copy
import tomllib
from collections.abc import Iterator
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from hfreg.evaluation.sampling import sample_call
from hfreg.ops.manifest import Manifest
from hfreg.ops.manifest_checks import check_manifest
from hfreg.ops.signature import signatures
from unit import samples

BODIES = [samples.BROADCAST, samples.MATMUL, samples.SOFTMAX, samples.CONV, samples.POOL]
DOCUMENTS = [tomllib.loads(samples.manifest_text(body)) for body in BODIES]
ITEMS = ["n", "c", "h", "kh", "oh", "ow", "i...", "batch...", "m?", "1", "1?", "(g c)", "{h w}", "z"]
OTHERS: dict[type, list[Any]] = {
    str: ["", "x", "n", "int", "ints", "float", "axis", "group", "kernel_shape[0]", "E0", "E4", "T", "float32"],
    int: [-1, 0, 1, 2, 7],
    float: [0.0, 0.5],
    bool: [True, False],
    list: [[], [1], [1, 2], ["float32"]],
    dict: [{}],
}


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inner:
        yield (*path, key)
        yield from places(item, (*path, key))


@st.composite
def mutated(draw: st.DrawFn) -> dict[str, Any]:
    document: dict[str, Any] = copy.deepcopy(draw(st.sampled_from(DOCUMENTS)))
    for _ in range(draw(st.integers(1, 2))):
        *parents, last = draw(st.sampled_from([path for path in places(document) if len(path) > 1]))
        place: Any = document
        for key in parents:
            place = place[key]
        old = place[last]
        if last == "shape" and old and draw(st.booleans()):
            items = old.split()
            items[draw(st.integers(0, len(items) - 1))] = draw(st.sampled_from(ITEMS))
            place[last] = " ".join(items)
        elif draw(st.booleans()):
            del place[last]
        else:
            place[last] = copy.deepcopy(draw(st.sampled_from(OTHERS[type(old)])))
    return document


@settings(max_examples=300)
@given(mutated())
def test_a_manifest_is_refused_or_has_calls_whose_outputs_have_shapes(document: dict[str, Any]) -> None:
    try:
        manifest = Manifest.model_validate(document)
    except ValidationError:
        return
    if check_manifest(manifest):
        return
    for signature in signatures(manifest):
        call = sample_call(signature, np.random.default_rng(0))
        if call is None:
            continue
        for tensor in signature.outputs:
            assert all(extent >= 0 for extent in call.binding.shape(tensor.pattern))
        for number in signature.runtime_attributes:
            number.of(call.binding.attributes)
