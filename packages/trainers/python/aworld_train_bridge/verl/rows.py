"""The service's result as rows of verl: every field set, in every row the same ones (facts of verl 0.9.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Mapping

from ..shared.rows import Row, failure_of, invalid_result, read_reward, read_rows
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
    """Arguments of AgentLoopOutput, one dict a row, the primary row last; each row has its own reward.

    A failed rollout raises ChannelError in training, so that verl marks its group as failed; in an evaluation it scores 0. Raises
    RESULT_INVALID, naming the row, for a result that verl would take and be harmed by.
    """
    header = result.header
    failure = failure_of(result)
    if failure is not None and not context.evaluation:
        raise failure
    scored = failure is None and not context.native_reward
    rows = read_rows(result, context.key, context.vocabulary_size, scored=scored)
    if not rows and failure is None:
        raise invalid_result(context.key, "it has no row")
    reward = 0.0 if failure is not None else read_reward(header.get("reward"), context.key, "the rollout") if scored else None
    scores = _reward_extra_info(header, reward, failure is not None)
    shared = {
        "num_turns": 2 * int(header.get("turns") or 0),
        "metrics": {
            "generate_sequences": float(header.get("generateMs") or 0) / 1000,
            "tool_calls": float(header.get("toolMs") or 0) / 1000,
            "compute_score": 0.0,
            "num_preempted": -1,
        },
    }
    fields = {"aworld_train_key": context.key, "stop_reason": str(header.get("stopReason"))}
    if failure is not None:
        fields["failure"] = failure.code
    return [
        {
            **_tokens(row),
            "reward_score": row.reward if scored else reward,
            **shared,
            "extra_fields": {
                "min_global_steps": context.fallback_version if row.min_version is None else row.min_version,
                "max_global_steps": context.fallback_version if row.max_version is None else row.max_version,
                "agent": row.agent,
                "trajectory": row.trajectory,
                **fields,
                "turn_scores": [],
                "tool_rewards": [],
                "reward_extra_info": dict(scores),
            },
        }
        for row in rows or [_empty_row(context)]
    ]


def failed_rows(key: str, error: ChannelError, context: RowContext) -> list[dict[str, Any]]:
    """A validated rollout that has no result of its own, such as one beyond its deadline: a scored row of 0."""
    header = {"type": "result", "key": key, "status": "failed", "stopReason": "error", "error": error.to_record(), "rows": []}
    return to_rows(Frame(header), context)


def _tokens(row: Row) -> dict[str, Any]:
    return {
        "prompt_ids": row.prompt_ids,
        "response_ids": row.response_ids,
        "response_mask": row.response_mask,
        "response_logprobs": row.response_logprobs,
    }


def _reward_extra_info(header: Mapping[str, Any], reward: float | None, failed: bool) -> dict[str, float]:
    """`acc` always, because verl counts lost sessions as 0 only where it stands; with a reward of verl's own, verl fills this."""
    if reward is None:
        return {}
    scores = {str(name): float(value) for name, value in (header.get("scores") or {}).items() if value is not None}
    accuracy = 0.0 if failed else scores.get("acc", reward)
    return {**scores, "acc": accuracy, "failed": float(failed)}


def _empty_row(context: RowContext) -> Row:
    """Stands for a validated rollout that failed before its first model call; nothing of it is trained."""
    return Row("", context.prompt_ids(), [context.eos_token_id], [0], [0.0], None, None, None)
