"""GRPOTrainer with rollouts of AWorld Train: `rollout_func` of TRL 1.16, its batches compared with the rows, its evaluation of tasks."""

from __future__ import annotations

import json
import math
import os
import time
from collections import Counter
from pathlib import Path
from typing import Any, Mapping, Sequence

import torch
from transformers import TrainerCallback
from trl import GRPOTrainer

from ..driver.batch_accounts import BatchAccounts
from ..driver.batch_record import record_batch, records_batches
from ..driver.rollouts import Outcome, Rollouts, Submission
from ..driver.rows import Row
from ..errors import RunError

REPLACEMENTS = 2
"""How often a failed rollout is begun again before its place in the batch stays empty."""


class Tasks:
    """The tasks of a partition: a JSON Lines file of {id, row}, the row as docs/4.reference/channel.md has it."""

    def __init__(self, path: Path) -> None:
        entries = [json.loads(line) for line in path.read_text(encoding="utf8").splitlines() if line]
        self.rows: dict[str, Mapping[str, Any]] = {str(entry["id"]): entry["row"] for entry in entries}

    def dataset(self, order: Sequence[str] | None = None) -> Any:
        """Prompts that carry the task's id, which is all that TRL needs of a task; `order` for other tasks than each one once."""
        from datasets import Dataset

        return Dataset.from_list([{"prompt": id} for id in order or self.rows])


class RolloutSource:
    """Turns prompts into rows. Failed rollouts are begun again; what fails still is a row without a reward, of which nothing is trained."""

    def __init__(self, rollouts: Rollouts, accounts: BatchAccounts, train: Tasks, test: Tasks | None, *, sampling: Mapping[str, Any], filler: int) -> None:
        self._rollouts, self._accounts, self._train, self._test = rollouts, accounts, train, test
        self._sampling, self._filler = sampling, filler  # `filler` is an id of the vocabulary
        self._step = -1
        self._taken: Counter[str] = Counter()
        self.seconds = 0.0
        self._replaced = 0

    def __call__(self, prompts: list[str], trainer: Any) -> dict[str, list[Any]]:
        """TRL's `rollout_func`: a row for each prompt, which arrives once for each of its generations."""
        started = time.perf_counter()
        outcomes = self._gather(prompts, trainer.state.global_step + 1, trainer.accelerator.process_index * len(prompts) * (1 + REPLACEMENTS))
        if all(outcome.error for outcome in outcomes):
            error = outcomes[0].error
            raise RunError("TRAINER_EMPTY_BATCH", f"All {len(outcomes)} rollouts of step {self._step} failed, the first with {error}; nothing was trained.")
        rows = [(outcome.key, outcome.rows[-1]) if outcome.error is None else (None, self._empty()) for outcome in outcomes]
        if (several := max(len(outcome.rows) for outcome in outcomes)) > 1:
            raise RunError("CONFIG_INVALID", f"A rollout came with {several} rows, and TRL trains one; set aworldTrain.rows to last or longest.")
        self._accounts.hand_over(rows)
        self.seconds += time.perf_counter() - started
        return {
            "prompt_ids": [row.prompt_ids for _, row in rows],
            "completion_ids": [row.response_ids for _, row in rows],
            "logprobs": [row.response_logprobs for _, row in rows],
            "env_mask": [row.response_mask for _, row in rows],
            "reward": [row.reward for _, row in rows],
        }

    def evaluate(self, step: int, samples: int, sampling: Mapping[str, Any]) -> dict[str, float]:
        """Mean reward of all held-out tasks, each `samples` times; a rollout that failed counts as 0."""
        assert self._test is not None
        started = time.perf_counter()
        outcomes = self._rollouts.run(
            [Submission("val", step, id, sample, row, sampling) for id, row in self._test.rows.items() for sample in range(samples)]
        )
        rewards = [float(outcome.reward or 0) if outcome.error is None else 0.0 for outcome in outcomes]
        return {
            "eval_reward": sum(rewards) / len(rewards),
            "eval_failed": float(sum(outcome.error is not None for outcome in outcomes)),
            "timing_s/evaluation": time.perf_counter() - started,
        }

    def take_replaced(self) -> int:
        """Rollouts that were begun again since this was last asked."""
        replaced, self._replaced = self._replaced, 0
        return replaced

    def _gather(self, prompts: Sequence[str], step: int, first: int) -> list[Outcome]:
        if step != self._step:
            self._step, self._taken = step, Counter()
        outcomes: list[Outcome | None] = [None] * len(prompts)
        missing = list(range(len(prompts)))
        for round in range(1 + REPLACEMENTS):
            submissions = [self._submission(prompts[index], step, first) for index in missing]
            for index, outcome in zip(missing, self._rollouts.run(submissions), strict=True):
                outcomes[index] = outcome
            missing = [index for index in missing if outcomes[index].error is not None]  # type: ignore[union-attr]
            if not missing:
                break
            if round < REPLACEMENTS:
                self._replaced += len(missing)
        return outcomes  # type: ignore[return-value]

    def _submission(self, id: str, step: int, first: int) -> Submission:
        sample = first + self._taken[id]
        self._taken[id] += 1
        return Submission("train", step, id, sample, self._train.rows[id], self._sampling)

    def _empty(self) -> Row:
        """TRL reads the last id of every completion, so an empty place in the batch has one, which is not trained."""
        return Row("", [self._filler], [self._filler], [0], [0.0], None, None, None)


def rewards(reward: list[float | None], **_: Any) -> list[float | None]:
    """The reward that came with each row; None is left out of the mean of its group."""
    return reward


class RolloutTrainer(GRPOTrainer):
    """Compares every batch with its rows as it is trained, and evaluates by rollouts alone."""

    source: RolloutSource
    accounts: BatchAccounts
    evaluation: Mapping[str, Any]
    """{samples, sampling} of an evaluation."""
    _recomputed: Any = None
    """Logprobs of the batch under way, with their graph."""

    def _get_per_token_logps_and_entropies(self, *args: Any, **options: Any) -> Any:
        result = super()._get_per_token_logps_and_entropies(*args, **options)
        if result[0].requires_grad:
            self._recomputed = result[0]
        return result

    def compute_loss(self, model: Any, inputs: dict[str, Any], *args: Any, **options: Any) -> Any:
        self._recomputed = None
        loss = super().compute_loss(model, inputs, *args, **options)
        if self.model.training:
            self._compare(inputs, self._recomputed, loss)
        self._recomputed = None
        return loss

    def _compare(self, inputs: dict[str, Any], computed: Any, loss: Any) -> None:
        prompts = [ids[mask.bool()].tolist() for ids, mask in zip(inputs["prompt_ids"], inputs["prompt_mask"], strict=True)]
        lengths = [int(mask.sum()) for mask in inputs["completion_mask"]]
        trained = inputs["completion_mask"] * inputs["tool_mask"] if "tool_mask" in inputs else inputs["completion_mask"]
        cut = lambda tensor: [row[:length] for row, length in zip(tensor, lengths, strict=True)]  # noqa: E731
        responses = [ids.tolist() for ids in cut(inputs["completion_ids"])]
        logprobs = None if computed is None else cut(computed.detach())
        step = self.state.global_step
        self.accounts.compare(prompts, responses, cut(trained), logprobs, step)
        if records_batches() and computed is not None:
            gradients = cut(torch.autograd.grad(loss, computed, retain_graph=True)[0])
            advantages = inputs["advantages"].detach()
            record_batch(self.accounts.ledger, step + 1, float(loss.detach()), prompts, responses, cut(trained), advantages, logprobs, gradients)

    def evaluate(self, *_: Any, **__: Any) -> dict[str, float]:
        # TRL gives vLLM new weights before a training batch alone; an evaluation would sample those of the update before.
        if self.use_vllm and self.state.global_step != self._last_loaded_step:
            self.vllm_generation.sync_weights()
            self._last_loaded_step = self.state.global_step
        metrics = self.source.evaluate(self.state.global_step, **self.evaluation)
        self.log(metrics)
        self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, metrics)
        return metrics


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
        self._accounts.close_step(state.global_step)

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
