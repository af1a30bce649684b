"""Logprobs of the engine that sampled against those of the model that trains."""

from __future__ import annotations

import math
from typing import Any, Sequence


def largest_difference(masks: Sequence[Any], rollout: Sequence[Any], actor: Sequence[Any]) -> float | None:
    """Largest |rollout - actor| logprob over tokens with mask 1, of one tensor a row; None without one.

    Raises RuntimeError [LOGPROBS_NOT_FINITE] where one is not finite.
    """
    differences = [float((a - b)[mask.bool()].abs().max()) for mask, a, b in zip(masks, rollout, actor, strict=True) if mask.any()]
    if not all(map(math.isfinite, differences)):
        raise RuntimeError(
            "[LOGPROBS_NOT_FINITE] The actor's logprob of a sampled token is not a finite number: an update diverged. "
            "Resume from an earlier checkpoint with a lower learning rate."
        )
    return max(differences, default=None)
