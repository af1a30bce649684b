"""The service's result as rows of verl: every field set, in every row the same ones (facts of verl 0.9.1).

What verl does not check is checked here: equal lengths, finite logprobs, ids of the vocabulary.
"""

from __future__ import annotations

import math
from array import array
from dataclasses import dataclass
from typing import Any, Callable, Mapping

from ..errors import ChannelError
from ..frames import Frame


@dataclass(frozen=True)
class RowContext:
    """What the result itself does not say. `prompt_ids` renders the row's messages, for a rollout without a single row."""

    key: str
    evaluation: bool
    vocabulary_size: int
    eos_token_id: int
    fallback_version: int
    prompt_ids: Callable[[], list[int]]
    native_reward: bool = False
    """verl scores, and a row has no reward of ours."""


def to_rows(result: Frame, context: RowContext) -> list[dict[str, Any]]:
    """Arguments of AgentLoopOutput, one dict a row, the primary row last.

    A failed rollout raises ChannelError in training, so that verl marks its group as failed; in an evaluation it scores 0. Raises
    RESULT_INVALID, naming the row, for a result that verl would take and be harmed by.
    """
    header = result.header
    failed = header.get("status") != "done"
    error = ChannelError.from_record(header.get("error"), "ROLLOUT_FAILED", f"The rollout ended with {header.get('stopReason')}.")
    if failed and not context.evaluation:
        raise error
    described = header.get("rows") or []
    if not described and not failed:
        raise _invalid(context.key, "it has no row")
    reward = 0.0 if failed else None if context.native_reward else _reward(header.get("reward"), context.key)
    extra_info = _reward_extra_info(header, reward, failed)
    shared = {
        "reward_score": reward,
        "num_turns": 2 * int(header.get("turns") or 0),
        "metrics": {
            "generate_sequences": float(header.get("generateMs") or 0) / 1000,
            "tool_calls": float(header.get("toolMs") or 0) / 1000,
            "compute_score": 0.0,
            "num_preempted": -1,
        },
    }
    fields = {"aworld_train_key": context.key, "stop_reason": str(header.get("stopReason"))}
    if failed:
        fields["failure"] = error.code
    rows = [_to_row(index, row, result.arrays, context) for index, row in enumerate(described)] or [_empty_row(context)]
    return [{**tokens, **shared, "extra_fields": {**extra, **fields, "turn_scores": [], "tool_rewards": [], "reward_extra_info": dict(extra_info)}} for tokens, extra in rows]


def failed_rows(key: str, error: ChannelError, context: RowContext) -> list[dict[str, Any]]:
    """A validated rollout that has no result of its own, such as one beyond its deadline: a scored row of 0."""
    header = {"type": "result", "key": key, "status": "failed", "stopReason": "error", "error": error.to_record(), "rows": []}
    return to_rows(Frame(header), context)


def _reward(value: Any, key: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise _invalid(key, f"its reward is {value!r}, not a finite number")
    return float(value)


def _reward_extra_info(header: Mapping[str, Any], reward: float | None, failed: bool) -> dict[str, float]:
    """`acc` always, because verl counts lost sessions as 0 only where it stands; with a reward of verl's own, verl fills this."""
    if reward is None:
        return {}
    scores = {str(name): float(value) for name, value in (header.get("scores") or {}).items() if value is not None}
    accuracy = 0.0 if failed else scores.get("acc", reward)
    return {**scores, "acc": accuracy, "failed": float(failed)}


def _to_row(index: int, row: Mapping[str, Any], arrays: Mapping[str, array], context: RowContext) -> tuple[dict[str, Any], dict[str, Any]]:
    name = f"row {index} ({row.get('agent')})"
    found = [arrays.get(f"{part}.{index}") for part in ("ids", "mask", "logprobs")]
    if any(values is None for values in found):
        raise _invalid(context.key, f"{name} lacks ids, mask or logprobs")
    ids, mask, logprobs = found
    length, prompt = int(row.get("length", -1)), int(row.get("promptLength", -1))
    if not len(ids) == len(mask) == len(logprobs) == length:
        raise _invalid(context.key, f"{name} says {length} tokens and has {len(ids)} ids, {len(mask)} of mask, {len(logprobs)} logprobs")
    if not 0 < prompt < length:
        raise _invalid(context.key, f"{name} has a prompt of {prompt} among {length} tokens; prompt and response need one token each")
    if min(ids) < 0 or max(ids) >= context.vocabulary_size:
        raise _invalid(context.key, f"{name} has a token id outside the vocabulary of {context.vocabulary_size}")
    if max(mask) > 1 or any(mask[:prompt]):
        raise _invalid(context.key, f"{name} has a mask that is not 0 or 1, or not 0 in its prompt")
    if not any(mask):
        raise _invalid(context.key, f"{name} has no sampled token")
    if not all(map(math.isfinite, logprobs)):
        raise _invalid(context.key, f"{name} has a logprob that is not finite")
    tokens = {
        "prompt_ids": ids[:prompt].tolist(),
        "response_ids": ids[prompt:].tolist(),
        "response_mask": mask[prompt:].tolist(),
        "response_logprobs": logprobs[prompt:].tolist(),
    }
    least, most = (_version(row.get(end), context) for end in ("minVersion", "maxVersion"))
    return tokens, {"min_global_steps": least, "max_global_steps": most, "agent": str(row.get("agent"))}


def _empty_row(context: RowContext) -> tuple[dict[str, Any], dict[str, Any]]:
    """Stands for a validated rollout that failed before its first model call; nothing of it is trained."""
    tokens = {
        "prompt_ids": context.prompt_ids(),
        "response_ids": [context.eos_token_id],
        "response_mask": [0],
        "response_logprobs": [0.0],
    }
    return tokens, {"min_global_steps": context.fallback_version, "max_global_steps": context.fallback_version, "agent": ""}


def _version(value: Any, context: RowContext) -> int:
    return context.fallback_version if value is None else int(value)


def _invalid(key: str, what: str) -> ChannelError:
    return ChannelError("RESULT_INVALID", f"The result of {key} cannot be handed to verl: {what}; use one version of AWorld Train on both sides.")
