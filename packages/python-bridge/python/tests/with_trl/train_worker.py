"""A process that trains with TRL as often as it is told, so that its imports are paid for once.

Reads scenarios from stdin, one JSON object a line: {plan, metrics, environment, fault}. Prints one JSON line for each: {"error": null or {code,
message}, "step": the last one}. The end of stdin ends it. A fault is what a broken trainer or engine would do, by name.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Iterator
from unittest import mock

from aworld_train_bridge.driver.engines import ModelEngine
from aworld_train_bridge.errors import ChannelError
from aworld_train_bridge.trl.__main__ import train
from aworld_train_bridge.trl.trainer import RolloutSource


@contextmanager
def env_mask_ignored() -> Iterator[None]:
    """Every token of a completion is trained."""
    call = RolloutSource.__call__

    def without(self: RolloutSource, *given: Any) -> Any:
        return {name: values for name, values in call(self, *given).items() if name != "env_mask"}

    with mock.patch.object(RolloutSource, "__call__", without):
        yield


@contextmanager
def temperature_wrong() -> Iterator[None]:
    """The engine samples colder than the trainer computes."""
    request = ModelEngine.request
    with mock.patch.object(ModelEngine, "request", lambda self, call, sampling: request(self, call, {**sampling, "temperature": 0.7})):
        yield


@contextmanager
def stale_engine() -> Iterator[None]:
    """The engine samples with the weights that the training began with, and says that they are the newest."""
    sampler, first = ModelEngine.sampler, {}

    @contextmanager
    def stale(self: ModelEngine) -> Iterator[Any]:
        model = self._model()
        newest = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        model.load_state_dict(first or newest)
        first.update(first or newest)
        try:
            with sampler(self) as each:
                yield each
        finally:
            model.load_state_dict(newest)

    with mock.patch.object(ModelEngine, "sampler", stale):
        yield


@contextmanager
def no_fault() -> Iterator[None]:
    yield


FAULTS = {None: no_fault, "env-mask-ignored": env_mask_ignored, "temperature-wrong": temperature_wrong, "stale-engine": stale_engine}


def play(scenario: dict[str, Any]) -> dict[str, Any]:
    os.environ.update(scenario["environment"])
    try:
        with FAULTS[scenario.get("fault")]():
            train(scenario["plan"], Path(scenario["metrics"]))
    except ChannelError as error:
        return {"error": {"code": error.code, "message": error.message}}
    except (ValueError, RuntimeError) as error:
        return {"error": {"code": type(error).__name__, "message": str(error)}}
    return {"error": None}


if __name__ == "__main__":
    # What TRL prints goes to stderr, so that answers stand alone on stdout.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        print(json.dumps(play(json.loads(line))), file=answers, flush=True)
