"""A rollout from its submission to its result, and the model calls that it makes meanwhile."""

from __future__ import annotations

import asyncio
from array import array
from dataclasses import dataclass, field
from typing import Any, Awaitable, Callable, Mapping

from .errors import ChannelError
from .frames import Frame


@dataclass(frozen=True)
class ModelCall:
    """A model call of one invocation of an agent: sample after `prompt_ids` under `sampling` {temperature, topP, topK, maxTokens, stop}."""

    id: int
    key: str
    trajectory: str
    turn: int
    sampling: Mapping[str, Any]
    prompt_ids: array


@dataclass(frozen=True)
class Sampled:
    """What the policy sampled: `finish` is stop, length or aborted; versions are those of the weights, least and greatest."""

    ids: array
    logprobs: array
    finish: str
    min_version: int
    max_version: int


ServeCall = Callable[[ModelCall], Awaitable[Sampled]]
LostCall = Callable[[ModelCall, int, str], None]


@dataclass
class OpenRollout:
    """State of one key. While `open`, model calls are served; `result` ends with the result frame or an error."""

    key: str
    submission: Mapping[str, Any]
    serve: ServeCall
    lost: LostCall
    result: asyncio.Future[Frame]
    open: bool = True
    calls: set[asyncio.Task[None]] = field(default_factory=set)
    timer: asyncio.TimerHandle | None = None

    def start_deadline(self, seconds: float) -> None:
        """Called when the service says that the rollout runs; a restarted one starts anew."""
        self.stop_deadline()
        self.timer = asyncio.get_running_loop().call_later(seconds, self._expire, seconds)

    def stop_deadline(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    def fail(self, error: ChannelError) -> None:
        if not self.result.done():
            self.result.set_exception(error)

    def close(self) -> None:
        """After this no model call of the key reaches the policy."""
        self.open = False
        self.stop_deadline()

    async def drain(self, seconds: float) -> None:
        """Waits for model calls that the policy still samples, so that none is in flight when weights change."""
        if self.calls:
            await asyncio.wait(set(self.calls), timeout=seconds)

    def _expire(self, seconds: float) -> None:
        message = f"The rollout {self.key} ran for {seconds:g} s without a result; raise the rollout timeout, or make the agent stop earlier."
        self.fail(ChannelError("ROLLOUT_DEADLINE", message, True))
