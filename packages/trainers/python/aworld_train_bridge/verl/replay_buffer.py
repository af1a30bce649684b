"""A replay buffer for verl 0.9's V1 trainer that trains on whole groups only; for CPU and GPUs alike.

verl's own trains on what is left of a group whose members failed (sync), or replaces only groups of which nothing is left.
Configuration: `trainer.v1.sampler.custom_sampler.path=pkg://aworld_train_bridge.verl.replay_buffer`, `.name=WholeGroupReplayBuffer`,
`trainer.v1.sampler.sync_refill_failed_groups=True` (it makes the dataloader give single prompts).
"""

import math
import time
from collections.abc import Callable, Mapping
from typing import Any

from aworld_train_bridge.verl.batch_ledger import install_batch_ledger
from verl.trainer.ppo.v1.replay_buffer import ReplayBuffer, ReplayBufferAsync

POLL_SECONDS = 2.0
WATCH_SECONDS = 2.0


def WholeGroupReplayBuffer(  # noqa: N802 - verl finds it by the name of a class
    *, trainer_mode: str, sampler_kwargs: Mapping[str, Any] | None, refill_fn: Callable[[int], Any] | None, **given: Any
) -> ReplayBuffer:
    """The buffer for `trainer_mode`. `sampler_kwargs`: `poll_interval` in seconds (2), and `max_refills`, the most failed groups
    that are replaced while one batch is gathered (4 times its prompts, at least 16; RuntimeError `[GROUPS_FAILED]` beyond), and
    `replace_failed` (true); where that is false the choice of groups is verl's own, and what remains is the ledger and the
    end of a run whose workers died (ActorDiedError), which verl would wait for without end.
    """
    install_batch_ledger()
    options = dict(sampler_kwargs or {})
    replace_failed = bool(options.get("replace_failed", True))
    buffer = _AsyncBuffer if trainer_mode != "sync" else _SyncBuffer if replace_failed else _OwnSyncBuffer
    made = buffer(
        trainer_mode=trainer_mode,
        sampler_kwargs=sampler_kwargs,
        refill_fn=refill_fn,
        poll_interval=float(options.get("poll_interval", POLL_SECONDS)),
        **_settings_of_own_class(trainer_mode, refill_fn, replace_failed),
        **given,
    )
    limit = options.get("max_refills")
    made.max_refills = None if limit is None else int(limit)
    made.workers = WorkerWatch(getattr(refill_fn, "__self__", None))
    return made


def _settings_of_own_class(trainer_mode: str, refill_fn: Callable[[int], Any] | None, replace_failed: bool) -> dict[str, Any]:
    """What verl gives to its own class and not to a custom one: DAPO's filter and the sizes of fetches."""
    trainer = getattr(refill_fn, "__self__", None)
    if trainer is None:
        return {"sync_refill_failed_groups": refill_fn is not None, "gen_batch_size": 1}
    config = trainer.config
    metric = trainer._resolve_filter_groups_metric()
    if trainer_mode != "sync":
        return {"filter_groups_metric": metric}
    single = bool(config.trainer.v1.sampler.get("sync_refill_failed_groups", False))
    if replace_failed and not single:
        raise ValueError(
            "WholeGroupReplayBuffer replaces single groups, and verl's dataloader gives whole batches; "
            "set trainer.v1.sampler.sync_refill_failed_groups=True."
        )
    filter_groups = config.algorithm.get("filter_groups", None)
    return {
        "filter_groups_metric": metric,
        "sync_refill_failed_groups": single,
        "train_batch_size": config.data.train_batch_size,
        "gen_batch_size": 1 if single or metric is not None else config.data.get("gen_batch_size", None) or config.data.train_batch_size,
        "max_inflight_gen_batches": 1 if metric is None else filter_groups.get("max_inflight_gen_batches", 1),
    }


class WorkerWatch:
    """Asks the agent loop workers of a trainer whether they live: verl hands them prompts and never asks again
    (verl/trainer/ppo/v1/agent_loop_tq.py, 0.9.1), so that the groups of a dead one would be waited for without end."""

    def __init__(self, trainer: Any) -> None:
        self._trainer = trainer
        self._asked: dict[int, Any] = {}
        self._next = 0.0

    def check(self) -> None:
        """Raises ray's ActorDiedError for a worker that died; a busy one, or one out of reach, answers a later time."""
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + WATCH_SECONDS
        workers = getattr(getattr(self._trainer, "agent_loop_manager", None), "agent_loop_workers", None) or ()
        if not workers:
            return
        import ray

        for index, worker in enumerate(workers):
            answer = self._asked.pop(index, None)
            if answer is None:
                answer = worker.__ray_ready__.remote()
            done, waiting = ray.wait([answer], timeout=0)
            if waiting:
                self._asked[index] = answer
            for each in done:
                try:
                    ray.get(each)
                except ray.exceptions.ActorUnavailableError:
                    pass  # a network that fails for a moment; asked again


class _LimitedRefills:
    """Counts the failed groups of a batch, and ends the run where there are too many, or where a worker died."""

    max_refills: int | None = None
    workers: WorkerWatch | None = None
    _refills = 0
    _limit = math.inf

    def _wait_for_next_poll(self, partition_id: str, last_debug_time: float) -> float:
        if self.workers is not None:
            self.workers.check()
        return super()._wait_for_next_poll(partition_id, last_debug_time)

    def sample(self, global_steps: int, partition_id: str, batch_size: int) -> Any:
        self._refills = 0
        self._limit = max(16, 4 * batch_size) if self.max_refills is None else self.max_refills
        return super().sample(global_steps=global_steps, partition_id=partition_id, batch_size=batch_size)

    def _evict_terminal_groups(self, global_steps: int, partition_id: str, eviction_reasons: Any) -> Any:
        evicted = super()._evict_terminal_groups(global_steps, partition_id, eviction_reasons)
        self._refills += len(eviction_reasons[2])
        if self._refills > self._limit:
            raise RuntimeError(
                f"[GROUPS_FAILED] {self._refills} groups with a failed rollout were replaced in step {global_steps}, and the "
                f"limit is {self._limit}; the episodes of the run say why they failed. Where so many are expected, raise "
                "trainer.v1.sampler.sampler_kwargs.max_refills."
            )
        return evicted


class _OwnSyncBuffer(_LimitedRefills, ReplayBuffer):
    """verl's choice of groups."""


class _SyncBuffer(_LimitedRefills, ReplayBuffer):
    """Of a training batch every group with a failed member is evicted and replaced; an evaluation takes all groups."""

    def _terminal_eviction_reasons(self, global_steps: int, partition_id: str) -> Any:
        stale, filtered, failed, counts = super()._terminal_eviction_reasons(global_steps, partition_id)
        return stale, filtered, failed if partition_id == "val" else set(self.failure_keys[partition_id]), counts


class _AsyncBuffer(_LimitedRefills, ReplayBufferAsync):
    """verl's own evicts failed groups whole; the limit is what it lacks."""
