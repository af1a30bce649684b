"""verl's agent loop whose agent runs in AWorld Train (verl/experimental/agent_loop/agent_loop.py, 0.9.1)."""

from __future__ import annotations

import asyncio
import itertools
from dataclasses import dataclass
from typing import Any
from uuid import uuid4
from weakref import WeakKeyDictionary

from verl.experimental.agent_loop.agent_loop import AgentLoopBase, AgentLoopMetrics, AgentLoopOutput

from ..channel import Channel
from ..connection import Greeting
from ..shared.files import render
from ..shared.keys import to_key
from ..shared.ledger import Ledger
from ..shared.model_facts import Framework, Limits, to_greeting
from ..shared.settings import WORKER, BridgeSettings, read_settings
from ..errors import ChannelError
from ..frames import Frame
from .dataset_row import partition_of, to_row, to_sampling
from .model_calls import ModelCalls
from .rows import RowContext, failed_rows, to_rows

_ENTRY_KEYS = ("channel", "token_file", "run", "incarnation", "run_path", "deadline_s")
_samples = itertools.count()


@dataclass
class Worker:
    """What all rollouts of this process share."""

    settings: BridgeSettings
    ledger: Ledger
    channel: Channel
    greeting: Greeting | None = None
    """Set before the channel's settings are known."""
    version: int = -1

    def heard_version(self, version: int) -> None:
        """The service learns of new weights by the first answer that they sampled."""
        if version > self.version:
            self.version = version
            self.channel.weights(version)


_workers: WeakKeyDictionary[asyncio.AbstractEventLoop, Worker] = WeakKeyDictionary()


class AworldTrainAgentLoop(AgentLoopBase):
    """Submits a row, serves the agent's model calls, and returns the rows that the service chose.

    Keys of its entry in agent.yaml: `module` (which the service runs), `channel`, `token_file`, `run`, `incarnation`, `run_path`,
    `deadline_s`; environment variables win (shared/settings.py).
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._entry = {key: kwargs.pop(key, None) for key in _ENTRY_KEYS}
        super().__init__(*args, **kwargs)
        if self.rollout_config.get("enable_rollout_routing_replay"):
            message = "rollout.enable_rollout_routing_replay needs the experts of every token, which the channel does not carry; set it to False."
            raise ChannelError("CONFIG_INVALID", message)

    async def run(self, sampling_params: dict[str, Any], **row: Any) -> AgentLoopOutput | list[AgentLoopOutput]:
        """One rollout. Raises ChannelError in training when it failed, so that verl drops its group; in an evaluation it scores 0."""
        worker, partition = self._share(), partition_of(row)
        service = await worker.channel.settings()
        model = worker.greeting.hello["model"]
        step = int(row.get("global_steps") or 0)
        listed = "session_id" in row
        sample = int(row["session_id"]) if listed else next(_samples)
        uid = str(row.get("uid") or uuid4()) if listed else f"{row.get('uid') or uuid4()}@{WORKER}"
        key = to_key(worker.settings.run, worker.settings.incarnation, partition, step, uid, sample)
        fallback_version = step if partition == "val" else max(0, step - 1)
        calls = ModelCalls(
            self.server_manager,
            key,
            sampling_params,
            stop_token_ids=frozenset(model["stopTokenIds"]),
            fallback_version=fallback_version,
            ledger=worker.ledger,
            on_version=worker.heard_version,
        )
        deadline = worker.settings.deadline_seconds
        submission = {
            "key": key,
            "partition": partition,
            "step": step,
            "uid": uid,
            "sample": sample,
            "row": to_row(row),
            "sampling": to_sampling(sampling_params),
            "deadlineMs": None if deadline is None else max(1, round(deadline * 1000)),
        }
        context = RowContext(
            key=key,
            evaluation=partition == "val",
            vocabulary_size=model["vocabularySize"],
            eos_token_id=int(self.tokenizer.eos_token_id),
            fallback_version=fallback_version,
            prompt_ids=lambda: self._prompt_ids(submission["row"]["prompt"]),
            native_reward=service.reward == "native",
        )
        try:
            result = await worker.channel.rollout(submission, calls.serve, calls.lost)
        except ChannelError as error:
            if partition == "train" or error.code != "ROLLOUT_DEADLINE":
                raise
            rows = failed_rows(key, error, context)
        else:
            rows = _accepted(worker.channel, result, context)
        outputs = [_to_output(row, calls.preempted) for row in rows]
        return outputs if listed else outputs[-1]

    def _prompt_ids(self, messages: list[dict[str, Any]]) -> list[int]:
        return render(self.tokenizer, messages, None, self.apply_chat_template_kwargs or {})

    def _share(self) -> Worker:
        """The worker's channel, made by its first rollout: one a process and event loop."""
        loop = asyncio.get_running_loop()
        found = _workers.get(loop)
        if found is None:
            entry = {**self._entry, "run": self._entry["run"] or "verl"}
            settings = read_settings(entry, incarnation=_ray_incarnation)
            channel = Channel(settings.url, settings.token, lambda: self._greet(worker))
            worker = Worker(settings, Ledger(settings.run_path, settings.incarnation), channel)
            _workers[loop] = found = worker
        return found

    def _greet(self, worker: Worker) -> Greeting:
        from omegaconf import OmegaConf
        from verl import __version__

        arguments = self.apply_chat_template_kwargs or {}
        plain = OmegaConf.to_container(arguments, resolve=True) if OmegaConf.is_config(arguments) else dict(arguments)
        rollout = self.config.actor_rollout_ref.rollout
        context = rollout.get("max_model_len")
        worker.greeting = to_greeting(
            worker.settings,
            framework=Framework("verl", __version__),
            model=str(self.config.actor_rollout_ref.model.path),
            tokenizer=self.tokenizer,
            template_arguments=plain,
            limits=Limits(int(rollout.prompt_length), int(rollout.response_length), None if context is None else int(context)),
        )
        return worker.greeting


def _accepted(channel: Channel, result: Frame, context: RowContext) -> list[dict[str, Any]]:
    try:
        rows = to_rows(result, context)
    except ChannelError as error:
        channel.refuse(context.key, error)
        raise
    channel.accept(context.key)
    return rows


def _to_output(row: dict[str, Any], preempted: int) -> AgentLoopOutput:
    metrics = AgentLoopMetrics(**{**row["metrics"], "num_preempted": preempted})
    return AgentLoopOutput(**{**row, "metrics": metrics})


def _ray_incarnation() -> str | None:
    """Where the environment names no incarnation: Ray's job and head node, which every worker of one start shares."""
    import ray

    if not ray.is_initialized():
        return None
    heads = [node["NodeID"] for node in ray.nodes() if "node:__internal_head__" in node.get("Resources", {})]
    return f"ray-{ray.get_runtime_context().get_job_id()}-{heads[0][:12]}" if heads else None
