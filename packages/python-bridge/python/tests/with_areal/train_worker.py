"""A process that trains with AReaL as often as it is told, so that its imports are paid for once.

Reads scenarios from stdin, one JSON object a line: {plan, metrics, environment, fault}. Prints one JSON line for each: {"error": null or {code,
message}}. The end of stdin ends it. A fault is what a broken trainer or engine would do, by name.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Iterator
from unittest import mock

os.environ["TORCHDYNAMO_DISABLE"] = "1"

import torch
from areal.api.io_struct import WeightUpdateRequests
from areal.engine.vllm_remote import VLLMBackend
from aworld_train_bridge.areal import trainer, workflow
from aworld_train_bridge.areal.__main__ import train
from aworld_train_bridge.areal.engine import ArealEngine, Sampling
from aworld_train_bridge.errors import ChannelError


@contextmanager
def env_mask_ignored() -> Iterator[None]:
    """Every token of a response is trained."""
    to_trajectory = workflow.to_trajectory

    def without(row: Any) -> Any:
        found = to_trajectory(row)
        return {**found, "loss_mask": (found["versions"] >= 0).int()}

    with mock.patch.object(workflow, "to_trajectory", without):
        yield


@contextmanager
def temperature_wrong() -> Iterator[None]:
    """The engine samples colder than the trainer computes."""
    sample = ArealEngine.sample
    with mock.patch.object(ArealEngine, "sample", lambda self, call, sampling: sample(self, call, Sampling(sampling.client, 0.7))):
        yield


@contextmanager
def stale_engine() -> Iterator[None]:
    """The server never gets new weights."""
    with mock.patch.object(VLLMBackend, "build_disk_weight_update_requests", lambda self, meta: WeightUpdateRequests(requests=[])):
        yield


@contextmanager
def packing_on() -> Iterator[None]:
    """Rows are packed into one micro-batch, which sdpa does not keep apart."""
    with mock.patch.object(trainer, "_one_row_each", lambda engine: None):
        yield


@contextmanager
def server_killed() -> Iterator[None]:
    """The inference server is gone after the first step."""
    commit, popen, servers = trainer.RolloutTrainer._committed, __import__("subprocess").Popen, []

    def started(*args: Any, **options: Any) -> Any:
        servers.append(popen(*args, **options))
        return servers[-1]

    def committed(self: Any, *args: Any) -> None:
        commit(self, *args)
        servers[0].kill()

    with mock.patch("subprocess.Popen", started), mock.patch.object(trainer.RolloutTrainer, "_committed", committed):
        yield


@contextmanager
def no_fault() -> Iterator[None]:
    yield


FAULTS = {
    None: no_fault,
    "env-mask-ignored": env_mask_ignored,
    "temperature-wrong": temperature_wrong,
    "stale-engine": stale_engine,
    "packing-on": packing_on,
    "server-killed": server_killed,
}


def play(scenario: dict[str, Any]) -> dict[str, Any]:
    os.environ.update(scenario["environment"])
    try:
        with FAULTS[scenario.get("fault")]():
            train(scenario["plan"], Path(scenario["metrics"]))
    except ChannelError as error:
        return {"error": {"code": error.code, "message": error.message}}
    except (ValueError, RuntimeError) as error:
        return {"error": {"code": type(error).__name__, "message": str(error)}}
    finally:
        if torch.distributed.is_initialized():
            torch.distributed.destroy_process_group()
    return {"error": None}


if __name__ == "__main__":
    # What AReaL prints goes to stderr, so that answers stand alone on stdout.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        print(json.dumps(play(json.loads(line))), file=answers, flush=True)
    os._exit(0)  # threads of a training that was broken may wait for ever
