"""A process that trains as often as it is told, so that a framework's imports are paid for once.

Reads scenarios from stdin, one JSON object a line: {plan, metrics, environment, fault}. Prints one JSON line for each: {"error": null or {code,
message}}. The end of stdin ends it. A fault is what a broken trainer or engine would do, by name.
"""

from __future__ import annotations

import json
import math
import os
import sys
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, Callable, ContextManager, Iterator, Mapping
from unittest import mock

from aworld_train_bridge.shared.engines import ModelEngine
from aworld_train_bridge.errors import ChannelError

Train = Callable[[Mapping[str, Any], Path], None]
Faults = Mapping[str, Callable[[], ContextManager[None]]]


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
def logprobs_nan() -> Iterator[None]:
    """A GRPOTrainer computes no number any more, as after an update that diverged."""
    from aworld_train_bridge.hugging_face.trainer import TrainsRollouts

    compute = TrainsRollouts._get_per_token_logps_and_entropies

    def diverged(self: Any, *args: Any, **options: Any) -> Any:
        logprobs, *others = compute(self, *args, **options)
        if self.recomputed is not None:
            self.recomputed = self.recomputed * math.nan
        return logprobs * math.nan, *others

    with mock.patch.object(TrainsRollouts, "_get_per_token_logps_and_entropies", diverged):
        yield


def serve(train: Train, faults: Faults) -> None:
    """Answers scenarios until there are none; what the framework prints goes to stderr, so that answers stand alone on stdout."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    every = {"temperature-wrong": temperature_wrong, "stale-engine": stale_engine, "logprobs-nan": logprobs_nan, **faults}
    for line in sys.stdin:
        print(json.dumps(_play(train, every, json.loads(line))), file=answers, flush=True)


def _play(train: Train, faults: Faults, scenario: Mapping[str, Any]) -> dict[str, Any]:
    os.environ.update(scenario["environment"])
    fault = scenario.get("fault")
    try:
        with faults[fault]() if fault else nullcontext():
            train(scenario["plan"], Path(scenario["metrics"]))
    except ChannelError as error:
        return {"error": {"code": error.code, "message": error.message}}
    except (ValueError, RuntimeError) as error:
        return {"error": {"code": type(error).__name__, "message": str(error)}}
    return {"error": None}
