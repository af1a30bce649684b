"""Frames of the channel, protocol 1: a text frame is one JSON object, a binary frame has a JSON header and arrays.

A binary frame: uint32 header length, header in UTF-8 with `arrays: [{name, type, length}]`, zero bytes up to a multiple of
four, then the arrays in that order, each padded to a multiple of four. Everything is little endian.
"""

from __future__ import annotations

import json
import sys
from array import array
from dataclasses import dataclass, field
from typing import Any, Iterable, Mapping

from .errors import ChannelError

PROTOCOL = 2
MAX_FRAME_BYTES = 1 << 30

_CODES = {"int32": "i", "float32": "f", "uint8": "B"}
_NAMES = {code: name for name, code in _CODES.items()}
_SWAP = sys.byteorder == "big"


@dataclass(frozen=True)
class Frame:
    """A message: its JSON object, and its arrays by name (`array.array` of 'i', 'f' or 'B')."""

    header: Mapping[str, Any]
    arrays: Mapping[str, array] = field(default_factory=dict)

    @property
    def type(self) -> str:
        return str(self.header["type"])


def int32(values: Iterable[int]) -> array:
    """Token ids as an array that a frame carries."""
    return _typed("i", values)


def float32(values: Iterable[float]) -> array:
    """Logprobs as an array that a frame carries."""
    return _typed("f", values)


def uint8(values: bytes | Iterable[int]) -> array:
    """Bytes or a mask as an array that a frame carries."""
    return _typed("B", values)


def encode_frame(header: Mapping[str, Any], arrays: Mapping[str, array] | None = None) -> str | bytes:
    """A message as text, or as bytes when it has arrays."""
    if not arrays:
        return _to_json(header)
    described = [{"name": name, "type": _NAMES[values.typecode], "length": len(values)} for name, values in arrays.items()]
    head = _to_json({**header, "arrays": described}).encode()
    parts = [len(head).to_bytes(4, "little"), head, _padding(len(head))]
    for values in arrays.values():
        data = _swapped(values).tobytes()
        parts += [data, _padding(len(data))]
    return b"".join(parts)


def decode_frame(data: str | bytes) -> Frame:
    """A frame as it arrived; raises ChannelError CHANNEL_INVALID for anything else than the format above."""
    if isinstance(data, str):
        return Frame(_to_header(data))
    if len(data) < 4:
        raise _invalid(f"a binary frame of {len(data)} bytes has no header")
    end = 4 + int.from_bytes(data[:4], "little")
    if end > len(data):
        raise _invalid(f"the header of {end - 4} bytes is longer than its frame of {len(data)} bytes")
    try:
        text = data[4:end].decode()
    except UnicodeDecodeError as error:
        raise _invalid("the header is not UTF-8") from error
    header = _to_header(text)
    described = header.pop("arrays", None)
    if not isinstance(described, list):
        raise _invalid("its header names no arrays")
    arrays: dict[str, array] = {}
    at = end + -end % 4
    for entry in described:
        name, code, length = _described(entry)
        if name in arrays:
            raise _invalid(f'the array "{name}" stands twice')
        values = array(code)
        size = length * values.itemsize
        if at + size > len(data):
            raise _invalid(f'the array "{name}" of {size} bytes is cut off after {max(0, len(data) - at)}')
        values.frombytes(memoryview(data)[at : at + size])
        arrays[name] = _swapped(values)
        at += size + -size % 4
    if at != len(data):
        raise _invalid(f"the frame has {len(data)} bytes, its arrays end at {at}")
    return Frame(header, arrays)


def _typed(code: str, values: Any) -> array:
    try:
        return array(code, values)
    except (OverflowError, TypeError) as error:
        raise ChannelError("CHANNEL_INVALID", f"values do not fit {_NAMES[code]}: {error}") from error


def _described(entry: Any) -> tuple[str, str, int]:
    name, kind, length = (entry.get(member) for member in ("name", "type", "length")) if isinstance(entry, dict) else (None,) * 3
    if not isinstance(name, str) or kind not in _CODES or type(length) is not int or length < 0:
        raise _invalid(f"an array is described by {entry!r}, not by name, type ({', '.join(_CODES)}) and length")
    return name, _CODES[kind], length


def _to_header(text: str) -> dict[str, Any]:
    try:
        header = json.loads(text)
    except ValueError as error:
        raise _invalid(f"the message is not JSON: {error}") from error
    if not isinstance(header, dict) or not isinstance(header.get("type"), str):
        raise _invalid("the message is not an object with a type")
    return header


def _to_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _swapped(values: array) -> array:
    if not _SWAP or values.itemsize == 1:
        return values
    copy = array(values.typecode, values)
    copy.byteswap()
    return copy


def _padding(size: int) -> bytes:
    return bytes(-size % 4)


def _invalid(what: str) -> ChannelError:
    return ChannelError("CHANNEL_INVALID", f"A frame of the channel cannot be read: {what}. Use one version of AWorld Train on both sides.")
