"""Rollouts from which the reward abstained: nothing of them is trained, they are begun again by nobody, and they are in no mean."""

from __future__ import annotations

from typing import Sequence

from ..errors import ChannelError
from .rollouts import Outcome


def is_unscored(error: ChannelError | None) -> bool:
    return error is not None and error.code == "ROLLOUT_UNSCORED"


def evaluated(outcomes: Sequence[Outcome]) -> dict[str, float]:
    """The means of an evaluation; a rollout that failed counts as 0."""
    scored = [outcome for outcome in outcomes if not is_unscored(outcome.error)]
    rewards = [float(outcome.reward or 0) if outcome.error is None else 0.0 for outcome in scored]
    return {
        "eval_reward": sum(rewards) / max(1, len(rewards)),
        "eval_failed": float(sum(outcome.error is not None for outcome in scored)),
        "eval_unscored": float(len(outcomes) - len(scored)),
    }
