"""Rollouts of AWorld Train as AReaL's RolloutWorkflow, and their rows as its trajectories."""

from __future__ import annotations

import math
from collections import Counter, defaultdict, deque
from threading import Lock
from typing import Any, Callable, Mapping

import torch
from areal.api import RolloutWorkflow

from ..shared.rollouts import Rollouts, Submission
from ..shared.rows import Row
from ..shared.unscored import is_unscored
from ..errors import ChannelError, RunError
from .engine import Sampling

REPLACEMENTS = 2
"""How often a failed rollout is begun again before its place in the group stays empty."""


class AgentWorkflow(RolloutWorkflow):
    """One rollout an episode. A place that stays empty is a row without a trained token, whose reward of NaN `FailedLeftOut` takes out.

    AReaL takes an exception of a workflow for a rejected rollout and begins another for ever, so `fail` ends the training instead.
    """

    def __init__(self, rollouts: Rollouts, tasks: Mapping[str, Mapping[str, Any]], *, temperature: float, filler: int, fail: Callable[[Exception], None]) -> None:
        self._rollouts, self._tasks, self._temperature, self._filler, self._fail = rollouts, tasks, temperature, filler, fail
        self._taken: Counter[tuple[int, str]] = Counter()
        self._rows: defaultdict[tuple[int, ...], deque[tuple[str, Row]]] = defaultdict(deque)
        self._rows_lock = Lock()
        self._replaced = 0
        self.last_error: ChannelError | None = None

    async def arun_episode(self, engine: Any, data: Mapping[str, Any]) -> dict[str, torch.Tensor]:
        try:
            for round in range(1 + REPLACEMENTS):
                self._replaced += round > 0
                outcome = await self._rollouts.rollout(self._submission(engine, data["id"]))
                if outcome.error is None:
                    break
                self.last_error = outcome.error
                if is_unscored(outcome.error):
                    break
            if outcome.error is not None:
                return to_trajectory(Row("", [self._filler], [self._filler], [0], [0.0], math.nan, None, None))
            if len(outcome.rows) > 1:
                raise RunError("CONFIG_INVALID", f"A rollout came with {len(outcome.rows)} rows, and AReaL's groups have one each; set rows to last or longest.")
        except Exception as error:
            self._fail(error)
            raise
        [row] = outcome.rows
        with self._rows_lock:
            self._rows[(*row.prompt_ids, *row.response_ids)].append((outcome.key, row))
        return to_trajectory(row)

    def take(self, ids: tuple[int, ...]) -> tuple[str, Row] | None:
        """A row with these ids that no batch had yet, and the key of its rollout; called by the trainer's thread while rollouts go on in another."""
        with self._rows_lock:
            rows = self._rows.get(ids)
            found = rows.popleft() if rows else None
            if not rows:
                self._rows.pop(ids, None)
        return found

    def take_replaced(self) -> int:
        """Rollouts that were begun again since this was last asked."""
        replaced, self._replaced = self._replaced, 0
        return replaced

    def _submission(self, engine: Any, task: str) -> Submission:
        step = engine.get_version() + 1
        sample = self._taken[step, task]
        self._taken[step, task] += 1
        return Submission("train", step, task, sample, self._tasks[task], Sampling(engine, self._temperature))


def to_trajectory(row: Row) -> dict[str, torch.Tensor]:
    """A row in AReaL's form, a batch of one. `versions` is -1 in the prompt, and that of the oldest weights behind it."""
    prompt, response = len(row.prompt_ids), len(row.response_ids)
    values = {
        "input_ids": torch.tensor([*row.prompt_ids, *row.response_ids], dtype=torch.int32),
        "loss_mask": torch.tensor([0] * prompt + row.response_mask, dtype=torch.int32),
        "logprobs": torch.tensor([0.0] * prompt + row.response_logprobs),
        "versions": torch.tensor([-1] * prompt + [row.min_version or 0] * response, dtype=torch.int32),
        "attention_mask": torch.ones(prompt + response, dtype=torch.bool),
        "rewards": torch.tensor(row.reward, dtype=torch.float32),
    }
    return {name: value.unsqueeze(0) for name, value in values.items()}


class FailedLeftOut:
    """A reward normalization of AReaL in which rows whose reward is NaN have no part: they get 0. None normalizes nothing."""

    def __init__(self, config: Any) -> None:
        self._config = config

    def __call__(self, rewards: torch.Tensor) -> torch.Tensor:
        from areal.utils.data import Normalization

        scored, config = ~rewards.isnan(), self._config
        if config is None:
            return rewards.nan_to_num()
        if scored.all():
            return Normalization(config)(rewards)
        result = Normalization(config)(rewards.nan_to_num(), loss_mask=scored.float())
        if config.mean_level == "group":
            # Without others to compare with, the mean of the others would be 0 and the whole reward an advantage.
            left = scored.view(-1, config.group_size).sum(1).repeat_interleave(config.group_size)
            result[left == 1] = 0
        return result
