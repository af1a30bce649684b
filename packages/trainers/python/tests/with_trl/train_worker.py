"""Trains with TRL as `train_scenarios` says."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any, Iterator
from unittest import mock

from train_scenarios import serve

from aworld_train_bridge.trl import trainer
from aworld_train_bridge.trl.__main__ import train


@contextmanager
def env_mask_ignored() -> Iterator[None]:
    """Every token of a completion is trained."""
    roll_out = trainer.roll_out

    def without(*arguments: Any) -> Any:
        return {name: values for name, values in roll_out(*arguments).items() if name != "env_mask"}

    with mock.patch.object(trainer, "roll_out", without):
        yield


if __name__ == "__main__":
    serve(train, {"env-mask-ignored": env_mask_ignored})
