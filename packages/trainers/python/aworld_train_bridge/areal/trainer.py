"""AReaL's PPOTrainer over rollouts of AWorld Train: its batches compared with the rows, its checkpoints whole, its evaluation of tasks."""

from __future__ import annotations

import json
import math
import shutil
import time
from pathlib import Path
from typing import Any, Callable, Mapping

import torch
from areal import PPOTrainer
from areal.utils import data as areal_data
from areal.utils import name_resolve, names
from areal.utils.timeutil import EpochStepTimeFreqCtl

from ..shared.batch_accounts import BatchAccounts
from ..shared.batch_record import records_batches
from ..shared.rollouts import Rollouts, Submission
from ..shared.rows import Row
from ..shared.unscored import evaluated
from ..errors import RunError
from .configuration import packs
from .engine import Sampling
from .micro_batch import MicroBatch, UpdateRecord
from .workflow import AgentWorkflow, FailedLeftOut


class RolloutTrainer(PPOTrainer):
    """`metrics` gets a line {step, data} a step, and one before the first for the evaluation before training. The `keep` newest checkpoints stay; None: all."""

    def __init__(self, config: Any, dataset: Any, checkpoints: Path, metrics: Path, keep: int | None) -> None:
        self._checkpoints, self._metrics, self._keep = checkpoints, metrics, keep
        self._data: dict[str, float] = {}
        self._began = time.perf_counter()
        self.failure: Exception | None = None
        self.ended = False
        config.recover.fileroot = str([config.cluster.fileroot, *whole_checkpoints(checkpoints)][-1])
        super().__init__(config, train_dataset=dataset)
        self.steps = min(config.total_train_steps or math.inf, config.total_train_epochs * len(self.train_dataloader))
        self.start_step = 0 if self.recover_info is None else self.recover_info.last_step_info.global_step + 1
        if self.recover_info is not None:
            # A checkpoint is written before its step is counted for evaluations, and each would come a step late from then on.
            last = self.recover_info.last_step_info
            self.evaluator.freq_ctl.check(epochs=int(last.epoch_step == last.steps_per_epoch - 1), steps=1)
        for engine in (self.actor, self.ref):
            if engine is not None and not packs(config):
                _one_row_each(engine)
        self.actor.actor.reward_norm = FailedLeftOut(config.actor.reward_norm)
        self._commit, self.stats_logger.commit = self.stats_logger.commit, self._committed
        if self.recover_info is None:
            self._push_weights()

    def use(self, workflow: AgentWorkflow, rollouts: Rollouts, accounts: BatchAccounts, test: Mapping[str, Mapping[str, Any]], evaluation: Mapping[str, Any], passes: int) -> None:
        """What rollouts come from; `evaluation` is {samples, temperature} of the tasks `test`; `passes` is how often an update goes over its batch."""
        self._workflow, self._rollouts, self._accounts, self._test, self._how = workflow, rollouts, accounts, test, evaluation
        self.actor.prepare_batch = _after(self.actor.prepare_batch, self._received)
        self.actor.train_batch = self._compared(self.actor.train_batch)
        update = self.actor.ppo_update
        # An update takes members out of its batch.
        self.actor.ppo_update = lambda batch: [update([dict(group) for group in batch]) for _ in range(passes)]

    def fail(self, error: Exception) -> None:
        """Ends the training from another thread, unless it has ended."""
        if self.failure is None and not self.ended:
            self.failure = error
            self.rollout.workflow_executor.dispatcher._set_thread_exception(error)

    def evaluate(self) -> None:
        """Mean reward of all held-out tasks; a rollout that failed counts as 0, one from which the reward abstained not at all."""
        if not self._test:
            return
        began = time.perf_counter()
        sampling = Sampling(self.eval_rollout, self._how["temperature"])
        version = self.eval_rollout.get_version()
        submissions = [Submission("val", version, id, sample, row, sampling) for id, row in self._test.items() for sample in range(self._how["samples"])]
        outcomes = self._rollouts.run(submissions)
        if self.failure is not None:  # what has failed then are not the rollouts
            raise self.failure
        self._data |= {**evaluated(outcomes), "timing_s/evaluation": time.perf_counter() - began}

    def write_line(self, step: int) -> None:
        data = {name: value for name, value in self._data.items() if math.isfinite(value)}
        self._data = {}
        self._metrics.parent.mkdir(parents=True, exist_ok=True)
        with self._metrics.open("a", encoding="utf8") as file:
            file.write(json.dumps({"step": step, "data": data}, allow_nan=False) + "\n")

    def _push_weights(self) -> None:
        """AReaL pushes none before its first step, and a server of an earlier run would sample with those."""
        self.rollout.pause()
        self.actor.update_weights(self.weight_update_meta.with_version(0))
        # The first step's update has this name too, and would be loaded before it is saved.
        name_resolve.delete(names.update_weights_from_disk(self.config.experiment_name, self.config.trial_name, 0))
        self.rollout.resume()

    def _received(self, batch: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """A batch as AReaL collected it: its rows are those that may be trained."""
        rows: list[tuple[str | None, Row]] = []
        rewards = []
        for group in batch:
            for ids, attended, reward in zip(group["input_ids"], group["attention_mask"], group["rewards"].tolist(), strict=True):
                if math.isnan(reward):
                    continue
                found = self._workflow.take(tuple(ids[attended.bool()].tolist()))
                if found is None:
                    raise RunError("BATCH_MISMATCH", f"A row of {int(attended.sum())} tokens in AReaL's batch is none that a rollout has; install the tested version of the trainer.")
                rows.append(found)
                rewards.append(reward)
        if not rows:
            error = self._workflow.last_error
            raise RunError("TRAINER_EMPTY_BATCH", f"All rollouts of step {self.actor.get_version() + 1} failed, the last with {error}; nothing was trained.")
        self._accounts.hand_over(rows)
        self._updates = 0
        self._data |= {"reward": sum(rewards) / len(rewards), "rollouts/replaced": float(self._workflow.take_replaced())}
        self._data["completions/mean_length"] = sum(sum(row.response_mask) for _, row in rows) / len(rows)
        return batch

    def _compared(self, train_batch: Callable[..., Any]) -> Callable[..., Any]:
        """`train_batch` of AReaL's engine, each micro-batch of which is compared with its rows where its loss is computed."""

        def train(input_: Any, loss_fn: Callable[..., Any], loss_weight_fn: Callable[..., Any]) -> Any:
            version, record = self.actor.get_version(), UpdateRecord() if records_batches() else None
            # The weights that sampled a batch are those of its first update only.
            is_first, self._updates = self._updates == 0, self._updates + 1

            def compared(logprobs: torch.Tensor, entropy: torch.Tensor, inputs: dict[str, Any], **options: Any) -> Any:
                part = MicroBatch(inputs)
                self._accounts.compare(part.prompts, part.responses, part.masks, part.of(logprobs) if is_first else None, version)
                loss = loss_fn(logprobs, entropy, inputs, **options)
                if record is not None:
                    record.add(part, loss, logprobs)
                return loss

            metrics = train_batch(input_, compared, loss_weight_fn)
            if record is not None:
                record.write(self._accounts, version + 1)
            return metrics

        return train

    def _save_recover_checkpoint(self, epoch: int, epoch_step: int, global_step: int) -> None:
        """AReaL writes a checkpoint over the one before; here each is written beside it and then appears whole."""
        began = time.perf_counter()
        if global_step + 1 == self.steps:
            self.recover_handler.freq_ctl = EpochStepTimeFreqCtl(None, 1, None)
        unfinished = self._checkpoints / "unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        self.recover_handler.config.fileroot = str(unfinished)
        super()._save_recover_checkpoint(epoch, epoch_step, global_step)
        if unfinished.exists() and any(unfinished.rglob("step_info.json")):
            unfinished.rename(self._checkpoints / f"step-{global_step + 1}")
            for old in whole_checkpoints(self._checkpoints)[: -self._keep] if self._keep else []:
                # One that is cut off while it is removed shall not have the name of a whole one.
                old.rename(unfinished)
                shutil.rmtree(unfinished)
            self._data["timing_s/checkpoint"] = time.perf_counter() - began

    def _evaluate(self, *, epoch: int, epoch_step: int, global_step: int, **_: Any) -> None:
        self.evaluator.evaluate(self.evaluate, epoch, epoch_step, global_step)

    def _committed(self, epoch: int, step: int, global_step: int, data: dict[str, float] | list[dict[str, float]]) -> None:
        self._commit(epoch, step, global_step, data)
        for each in data if isinstance(data, list) else [data]:
            self._data |= {name: float(value) for name, value in each.items() if isinstance(value, (int, float))}
        self._data["timing_s/step"] = time.perf_counter() - self._began
        self._began = time.perf_counter()
        self._data |= self._accounts.close_step(global_step + 1)
        self.write_line(global_step + 1)


def _one_row_each(engine: Any) -> None:
    """Micro-batches of one row: rows that sdpa gets packed attend to each other. Pages of a GPU's memory, to which AReaL pads each, are none of theirs."""
    areal_data.N_TOKENS_PER_PAGE = 32

    def limited(call: Callable[..., Any]) -> Callable[..., Any]:
        def run(input_: Any, *args: Any, **options: Any) -> Any:
            inputs = input_ if isinstance(input_, list) else [input_]
            engine.config.mb_spec.n_mbs = sum(each["attention_mask"].shape[0] for each in inputs)
            return call(input_, *args, **options)

        return run

    engine.train_batch, engine.forward_batch = limited(engine.train_batch), limited(engine.forward_batch)


def _after(call: Callable[..., Any], then: Callable[[Any], Any]) -> Callable[..., Any]:
    return lambda *args, **options: then(call(*args, **options))


def whole_checkpoints(folder: Path) -> list[Path]:
    """Those with a name of their own, which they have only when they are whole, in the order of their steps."""
    steps = [path for path in folder.glob("step-*") if path.name.removeprefix("step-").isdigit()]
    return sorted(steps, key=lambda path: int(path.name.removeprefix("step-")))
