"""Trains with ms-swift as `train_scenarios` says."""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Callable, ContextManager, Iterator, Mapping
from unittest import mock

from train_scenarios import serve

from aworld_train_bridge.hugging_face.trainer import TrainsRollouts
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


@contextmanager
def _fused_loss() -> Iterator[None]:
    """The loss is computed without logprobs by token, as that of Liger is."""

    def unseen(self: RolloutTrainer, *args: Any, **options: Any) -> Any:
        return super(TrainsRollouts, self)._get_per_token_logps_and_entropies(*args, **options)

    with mock.patch.object(RolloutTrainer, "_get_per_token_logps_and_entropies", unseen, create=True):
        yield


def _ignore_mask(result: Any) -> None:
    [mask] = result.response_loss_mask
    mask[mask.index(1) :] = [1] * (len(mask) - mask.index(1))


def _change_id(result: Any) -> None:
    [ids] = result.response_token_ids
    ids[-1] ^= 1


def _shift_logprobs(result: Any) -> None:
    [logprobs] = result.rollout_logprobs
    logprobs.insert(0, logprobs.pop())


def _train_alone(plan: Mapping[str, Any], metrics: Path) -> None:
    """Trains where asking the hub whether the model is the latest, as swift does by default, is an error."""
    with mock.patch("swift.trainers.mixin.check_local_model_is_latest", side_effect=RuntimeError("The hub was asked.")):
        train(plan, metrics)


if __name__ == "__main__":
    serve(
        _train_alone,
        {
            "loss-fused": _fused_loss,
            "env-mask-ignored": changed(_ignore_mask),
            "id-changed": changed(_change_id),
            "logprobs-shifted": changed(_shift_logprobs),
            "logprobs-too-few": changed(lambda result: result.rollout_logprobs[0].pop()),
            "logprobs-missing": changed(lambda result: setattr(result, "rollout_logprobs", [])),
        },
    )
