"""Values of a dataset as plain JSON."""

from __future__ import annotations

import datetime
import math
from typing import Any

from .errors import ChannelError

_LARGEST_EXACT = 2**53 - 1


def to_plain(value: Any, name: str = "row") -> Any:
    """`value` as JSON has it: numpy and torch values as numbers and lists, dates as ISO 8601, NaN as null.

    Raises ChannelError DATASET_INVALID, naming the member, for bytes, infinities, integers beyond 2^53 and other objects.
    """
    if value is None or isinstance(value, (str, bool)):
        return str(value) if isinstance(value, str) else value
    if isinstance(value, int):
        if abs(value) > _LARGEST_EXACT:
            raise _refused(name, f"the integer {value} is beyond 2^53; store it as text")
        return int(value)
    if isinstance(value, float):
        if math.isinf(value):
            raise _refused(name, "an infinite number has no JSON; store null or text")
        return None if math.isnan(value) else float(value)
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, dict):
        return {str(key): to_plain(member, f"{name}.{key}") for key, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_plain(member, f"{name}[{index}]") for index, member in enumerate(value)]
    if isinstance(value, (bytes, bytearray, memoryview)):
        raise _refused(name, "bytes have no JSON; store text, or the path of a file")
    return _from_array(value, name)


def _from_array(value: Any, name: str) -> Any:
    """Scalars and arrays of numpy and torch, told by where their type was defined, so that neither is imported."""
    if type(value).__module__.split(".")[0] not in ("numpy", "torch"):
        raise _refused(name, f"a {type(value).__module__}.{type(value).__qualname__} has no JSON; store text, numbers, lists or objects")
    if getattr(value, "dtype", None) is not None and getattr(value.dtype, "kind", None) in ("M", "m"):
        return None if str(value) == "NaT" else _dates(value, name)
    return to_plain(value.tolist(), name)


def _dates(value: Any, name: str) -> Any:
    if getattr(value, "ndim", 0) > 0:
        return [to_plain(member, f"{name}[{index}]") for index, member in enumerate(value)]
    return str(value)


def _refused(name: str, what: str) -> ChannelError:
    return ChannelError("DATASET_INVALID", f"{name} cannot be sent to the agent: {what}.")
