"""A line of metrics for every step, and the end of its accounts."""

from __future__ import annotations

import json
import math
import os
import time
from pathlib import Path
from typing import Any, Mapping

from transformers import TrainerCallback

from ..shared.batch_accounts import BatchAccounts
from .rollout_source import RolloutSource


class StepLog(TrainerCallback):
    """Writes a line {step, data} for every step once its evaluation and its checkpoint are done, and closes the accounts of a step."""

    def __init__(self, path: Path, accounts: BatchAccounts, source: RolloutSource) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self._accounts, self._source = accounts, source
        self._began = self._logged = 0.0
        self._rollout_seconds = 0.0
        self._data: dict[str, float] = {}

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._write(state.global_step)
        self._began, self._rollout_seconds = time.perf_counter(), self._source.seconds

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        seconds, rollouts = time.perf_counter() - self._began, self._source.seconds - self._rollout_seconds
        self._data |= {"timing_s/step": seconds, "timing_s/rollout": rollouts, "timing_s/update": seconds - rollouts}
        self._data["rollouts/replaced"] = self._source.take_replaced()
        self._data |= self._accounts.close_step(state.global_step)

    def on_log(self, args: Any, state: Any, control: Any, logs: Mapping[str, Any] | None = None, **_: Any) -> None:
        if "train_runtime" not in (logs or {}):
            self._data |= {name: value for name, value in (logs or {}).items() if isinstance(value, (int, float)) and math.isfinite(value)}
        self._logged = time.perf_counter()

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._data["timing_s/checkpoint"] = time.perf_counter() - self._logged

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._write(state.global_step)
        os.close(self._file)

    def _write(self, step: int) -> None:
        if self._data:
            os.write(self._file, (json.dumps({"step": step, "data": self._data}, allow_nan=False) + "\n").encode())
        self._data = {}
