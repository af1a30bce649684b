"""The rows of a result, checked: equal lengths, finite logprobs, ids of the vocabulary, a reward for each row that is trained."""

from __future__ import annotations

import math
from array import array
from dataclasses import dataclass
from typing import Any, Mapping

from ..errors import ChannelError
from ..frames import Frame


@dataclass(frozen=True)
class Row:
    """Tokens of one branch: the response begins with its first sampled token, and mask 1 is what this row trains.

    `response_ids`, `response_mask` and `response_logprobs` have one length. Versions are those of the weights that sampled, None
    where the service says none; `reward` is None where the trainer scores, or the rollout failed. `trajectory` is the id of the invocation,
    empty for a row that stands for a rollout without one.
    """

    agent: str
    prompt_ids: list[int]
    response_ids: list[int]
    response_mask: list[int]
    response_logprobs: list[float]
    reward: float | None
    min_version: int | None
    max_version: int | None
    trajectory: str = ""


def failure_of(result: Frame) -> ChannelError | None:
    """Why nothing of this rollout may be trained; None where it may."""
    header = result.header
    if header.get("status") == "done":
        return None
    return ChannelError.from_record(header.get("error"), "ROLLOUT_FAILED", f"The rollout ended with {header.get('stopReason')}.")


def read_rows(result: Frame, key: str, vocabulary_size: int, *, scored: bool = True) -> list[Row]:
    """The rows of a result, the primary one last. `scored`: each row must have a reward of the service.

    Raises RESULT_INVALID, naming the row, for a result that a trainer would take and be harmed by.
    """
    described = result.header.get("rows") or []
    return [_read_row(index, row, result.arrays, key, vocabulary_size, scored) for index, row in enumerate(described)]


def read_reward(value: Any, key: str, name: str) -> float:
    """A reward as a finite number; RESULT_INVALID else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise invalid_result(key, f"the reward of {name} is {value!r}, not a finite number")
    return float(value)


def invalid_result(key: str, what: str) -> ChannelError:
    return ChannelError("RESULT_INVALID", f"The result of {key} cannot be trained: {what}; use one version of AWorld Train on both sides.")


def _read_row(index: int, row: Mapping[str, Any], arrays: Mapping[str, array], key: str, vocabulary_size: int, scored: bool) -> Row:
    name = f"row {index} ({row.get('trajectory')})"
    found = [arrays.get(f"{part}.{index}") for part in ("ids", "mask", "logprobs")]
    if any(values is None for values in found):
        raise invalid_result(key, f"{name} lacks ids, mask or logprobs")
    ids, mask, logprobs = found
    length, prompt = int(row.get("length", -1)), int(row.get("promptLength", -1))
    if not len(ids) == len(mask) == len(logprobs) == length:
        raise invalid_result(key, f"{name} says {length} tokens and has {len(ids)} ids, {len(mask)} of mask, {len(logprobs)} logprobs")
    if not 0 < prompt < length:
        raise invalid_result(key, f"{name} has a prompt of {prompt} among {length} tokens; prompt and response need one token each")
    if min(ids) < 0 or max(ids) >= vocabulary_size:
        raise invalid_result(key, f"{name} has a token id outside the vocabulary of {vocabulary_size}")
    if max(mask) > 1 or any(mask[:prompt]):
        raise invalid_result(key, f"{name} has a mask that is not 0 or 1, or not 0 in its prompt")
    if not any(mask):
        raise invalid_result(key, f"{name} has no sampled token")
    if not all(map(math.isfinite, logprobs)):
        raise invalid_result(key, f"{name} has a logprob that is not finite")
    versions = [None if row.get(end) is None else int(row[end]) for end in ("minVersion", "maxVersion")]
    return Row(
        agent=str(row.get("agent")),
        prompt_ids=ids[:prompt].tolist(),
        response_ids=ids[prompt:].tolist(),
        response_mask=mask[prompt:].tolist(),
        response_logprobs=logprobs[prompt:].tolist(),
        reward=read_reward(row.get("reward"), key, name) if scored else None,
        min_version=versions[0],
        max_version=versions[1],
        trajectory=str(row.get("trajectory")),
    )
