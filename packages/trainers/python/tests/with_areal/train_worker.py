"""Trains with AReaL as `train_scenarios` says."""

from __future__ import annotations

import math
import os
import shutil
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Iterator, Mapping
from unittest import mock

os.environ["TORCHDYNAMO_DISABLE"] = "1"

import torch
from areal.api.io_struct import WeightUpdateRequests
from areal.engine.vllm_remote import VLLMBackend
from safetensors.torch import load_file, save_file
from train_scenarios import serve

from aworld_train_bridge.areal import __main__ as start
from aworld_train_bridge.areal import trainer, workflow
from aworld_train_bridge.areal.engine import ArealEngine, Sampling


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
def server_reused() -> Iterator[None]:
    """The server begins with other weights than the training, as one that an earlier run has left."""
    serving = start.inference_server
    with TemporaryDirectory() as folder:

        def reused(model: str, config: Any) -> Any:
            shutil.copytree(model, folder, dirs_exist_ok=True)
            weights = load_file(Path(model, "model.safetensors"))
            save_file({name: 0.9 * tensor for name, tensor in weights.items()}, Path(folder, "model.safetensors"), {"format": "pt"})
            return serving(folder, config)

        with mock.patch.object(start, "inference_server", reused):
            yield


@contextmanager
def not_pushed() -> Iterator[None]:
    """Such a server samples the first step with those weights, as AReaL alone would have it."""
    with server_reused(), mock.patch.object(trainer.RolloutTrainer, "_push_weights", lambda self: None):
        yield


@contextmanager
def packing_on() -> Iterator[None]:
    """Rows are packed into one micro-batch, which sdpa does not keep apart."""
    with mock.patch.object(trainer, "_one_row_each", lambda engine: None):
        yield


@contextmanager
def logprobs_nan() -> Iterator[None]:
    """The trainer computes no number any more, as after an update that diverged."""
    from areal.engine import FSDPEngine  # logs to stdout as it is imported

    compute = FSDPEngine._compute_logprobs_entropy

    def diverged(self: Any, *args: Any, **options: Any) -> Any:
        logprobs, entropy = compute(self, *args, **options)
        return logprobs * math.nan, entropy

    with mock.patch.object(FSDPEngine, "_compute_logprobs_entropy", diverged):
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


def train_once(plan: Mapping[str, Any], metrics: Path) -> None:
    try:
        start.train(plan, metrics)
    finally:
        if torch.distributed.is_initialized():
            torch.distributed.destroy_process_group()


if __name__ == "__main__":
    serve(
        train_once,
        {
            "env-mask-ignored": env_mask_ignored,
            "temperature-wrong": temperature_wrong,
            "stale-engine": stale_engine,
            "server-reused": server_reused,
            "not-pushed": not_pushed,
            "packing-on": packing_on,
            "logprobs-nan": logprobs_nan,
            "server-killed": server_killed,
        },
    )
    os._exit(0)  # threads of a training that was broken may wait for ever
