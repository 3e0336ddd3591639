from __future__ import annotations

import io
import json
import math
import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from hfreg.arrays import Array
from hfreg.dtypes import DTYPES
from hfreg.errors import RunError
from hfreg.wire import MAX_HEADER, Message, dump, from_jsonable, jsonable, load


def load_bytes(data: bytes) -> Message:
    """Read a message from bytes; asking for more than there is raises, as a closed pipe does."""
    stream = io.BytesIO(data)

    def read(count: int) -> bytes:
        part = stream.read(count)
        if len(part) < count:
            raise EOFError
        return part

    message = load(read)
    assert not stream.read(), "a message is read to its last byte"
    return message


def raw(header: bytes, content: bytes = b"", *, magic: bytes = b"HFRG", length: int | None = None) -> bytes:
    """A message as the module's docstring describes it, written without the module."""
    return magic + struct.pack("<I", len(header) if length is None else length) + header + content


def arrays_of(name: str) -> st.SearchStrategy[Array]:
    width = DTYPES[name].itemsize
    shapes = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)
    content = st.integers(0, 255) if name != "bool" else st.integers(0, 1)
    return shapes.flatmap(
        lambda shape: hnp.arrays(np.uint8, math.prod(shape) * width, elements=content).map(
            lambda values: values.view(DTYPES[name].numpy).reshape(shape)
        )
    )


arrays = st.sampled_from(sorted(DTYPES)).flatmap(arrays_of)
bodies = st.dictionaries(
    st.text(max_size=5), st.none() | st.booleans() | st.integers() | st.text(max_size=5), max_size=4
)


@given(bodies, st.dictionaries(st.text(max_size=5), arrays, max_size=3))
def test_a_message_arrives_as_it_was_sent(body: dict[str, Any], sent: dict[str, Array]) -> None:
    message = load_bytes(dump(Message(body, sent)))
    assert message.body == body
    assert list(message.arrays) == list(sent)
    for name, array in sent.items():
        got = message.arrays[name]
        assert (got.dtype, got.shape, got.tobytes()) == (array.dtype, array.shape, array.tobytes())
        assert got.flags.writeable


def test_the_bytes_are_those_that_the_module_documents() -> None:
    array = np.array([[1, 2], [3, 258]], np.int16)
    data = dump(Message({"a": 1}, {"x": array.T}))
    magic, length = struct.unpack_from("<4sI", data)
    assert magic == b"HFRG"
    assert json.loads(data[8 : 8 + length]) == {
        "body": {"a": 1},
        "arrays": [{"name": "x", "dtype": "int16", "shape": [2, 2]}],
    }
    assert data[8 + length :] == struct.pack("<4h", 1, 3, 2, 258)  # row by row, whatever the strides were


def header(**entry: Any) -> bytes:
    table = [{"name": "x", "dtype": "float32", "shape": [2], **entry}]
    return json.dumps({"body": {}, "arrays": table}).encode()


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(raw(b"{}", magic=b"HFRH"), id="other magic"),
        pytest.param(raw(b"", length=MAX_HEADER + 1), id="header too long"),
        pytest.param(b"Traceb" + b"ack (most recent call last):", id="text"),
        pytest.param(raw(b""), id="empty header"),
        pytest.param(raw(b"not json"), id="not JSON"),
        pytest.param(raw(b"\xff\xff"), id="not UTF-8"),
        pytest.param(raw(b"[]"), id="a list"),
        pytest.param(raw(b"3"), id="a number"),
        pytest.param(raw(b"{}"), id="no body"),
        pytest.param(raw(b'{"body":{}}'), id="no arrays"),
        pytest.param(raw(b'{"body":[],"arrays":[]}'), id="body is a list"),
        pytest.param(raw(b'{"body":{},"arrays":3}'), id="arrays is a number"),
        pytest.param(raw(b'{"body":{},"arrays":[3]}'), id="an array is a number"),
        pytest.param(raw(header(dtype="float8"), b"\0" * 8), id="unknown type"),
        pytest.param(raw(header(dtype=[]), b"\0" * 8), id="type is a list"),
        pytest.param(raw(header(shape=3), b"\0" * 8), id="shape is a number"),
        pytest.param(raw(header(shape=["a"]), b"\0" * 8), id="extent is a word"),
        pytest.param(raw(header(shape=[None]), b"\0" * 8), id="extent is nothing"),
        pytest.param(raw(header(shape=[-1])), id="negative extent"),
        pytest.param(raw(header(shape=[-2, -1]), b"\0" * 8), id="two negative extents"),
        pytest.param(raw(header(shape=[2**30, 2])), id="more than 4 GiB"),
        pytest.param(raw(header(shape=[1e999])), id="infinite extent"),
        pytest.param(raw(header(shape=[2.0]), b"\0" * 8), id="extent is a float"),
        pytest.param(raw(header(shape=["2"]), b"\0" * 8), id="extent is text"),
        pytest.param(raw(header(shape=[0, 10**30])), id="no bytes, but an extent beyond any array"),
        pytest.param(raw(header(shape=[1] * 65), b"\0" * 4), id="more axes than an array has"),
        pytest.param(raw(b"[" * 1_000_000), id="nested too deeply"),
    ],
)
def test_what_is_no_message_is_a_run_error(data: bytes) -> None:
    # "Raises: RunError: what arrives is no message": a child that misbehaves must not end its parent.
    with pytest.raises(RunError):
        load_bytes(data)


@given(st.data())
def test_a_message_that_is_cut_off_asks_for_the_bytes_that_are_missing(data: st.DataObject) -> None:
    whole = dump(Message({"a": 1}, {"x": np.arange(6, dtype=np.float32)}))
    with pytest.raises(EOFError):
        load_bytes(whole[: data.draw(st.integers(0, len(whole) - 1))])


@given(st.binary(max_size=60).map(raw) | st.binary(max_size=60))
def test_any_bytes_are_a_message_or_an_error_that_is_expected(data: bytes) -> None:
    with pytest.raises((RunError, EOFError)):
        load_bytes(data)


values = (
    st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.lists(st.integers(), max_size=4)
    | st.sampled_from([math.inf, -math.inf, math.nan, -0.0, 5e-324])
)


@given(st.dictionaries(st.text(max_size=5), values, max_size=5))
def test_attributes_survive_json_to_the_last_bit(attributes: dict[str, Any]) -> None:
    sent = json.loads(json.dumps(jsonable(attributes), allow_nan=False))
    received = from_jsonable(sent)
    assert received.keys() == attributes.keys()
    for name, value in attributes.items():
        if isinstance(value, float):
            same = math.isnan(received[name]) if math.isnan(value) else received[name].hex() == value.hex()
            assert same
        else:
            assert received[name] == value
            assert type(received[name]) is type(value)
