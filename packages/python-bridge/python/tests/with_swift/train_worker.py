"""Trains with ms-swift as `train_scenarios` says."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import Any, Callable, ContextManager, Iterator
from unittest import mock

from train_scenarios import serve

from aworld_train_bridge.swift.__main__ import train
from aworld_train_bridge.swift.trainer import RolloutTrainer

os.environ.setdefault("USE_HF", "1")


def changed(change: Callable[[Any], None]) -> Callable[[], ContextManager[None]]:
    """What swift is handed of every row is changed."""

    @contextmanager
    def fault() -> Iterator[None]:
        output = RolloutTrainer._output

        def other(self: RolloutTrainer, row: Any) -> Any:
            result = output(self, row)
            change(result)
            return result

        with mock.patch.object(RolloutTrainer, "_output", other):
            yield

    return fault


def _ignore_mask(result: Any) -> None:
    [mask] = result.response_loss_mask
    mask[mask.index(1) :] = [1] * (len(mask) - mask.index(1))


def _change_id(result: Any) -> None:
    [ids] = result.response_token_ids
    ids[-1] ^= 1


def _shift_logprobs(result: Any) -> None:
    [logprobs] = result.rollout_logprobs
    logprobs.insert(0, logprobs.pop())


if __name__ == "__main__":
    serve(
        train,
        {
            "env-mask-ignored": changed(_ignore_mask),
            "id-changed": changed(_change_id),
            "logprobs-shifted": changed(_shift_logprobs),
            "logprobs-too-few": changed(lambda result: result.rollout_logprobs[0].pop()),
            "logprobs-missing": changed(lambda result: setattr(result, "rollout_logprobs", [])),
        },
    )
