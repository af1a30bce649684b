"""Rollouts for a trainer that blocks: the channel and its event loop stand in a thread of their own."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass, field
from typing import Any, Callable, Coroutine, Mapping, Sequence, TypeVar

from ..channel import Channel, Connect
from ..connection import Greeting
from ..errors import ChannelError
from ..open_rollout import ModelCall, Sampled
from ..transport import connect_aiohttp
from .engines import Engine
from .keys import to_key
from .ledger import Ledger
from .rows import Row, failure_of, invalid_result, read_rows
from .settings import BridgeSettings

Value = TypeVar("Value")


@dataclass(frozen=True)
class Submission:
    """One rollout of the task `uid`: `row` as in docs/4.reference/channel.md, `sampling` in the words of the channel."""

    partition: str
    step: int
    uid: str
    sample: int
    row: Mapping[str, Any]
    sampling: Mapping[str, Any]


@dataclass(frozen=True)
class Outcome:
    """What became of a rollout. With an `error` nothing of it may be trained; `rows` are those that it got to, in an evaluation."""

    key: str
    rows: list[Row]
    reward: float | None = None
    scores: Mapping[str, float] = field(default_factory=dict)
    error: ChannelError | None = None


class Rollouts:
    """Submits rollouts and lets `engine` answer their model calls; counts in the ledger what was sampled, and what nobody received."""

    def __init__(self, settings: BridgeSettings, greeting: Callable[[], Greeting], engine: Engine, connect: Connect = connect_aiohttp) -> None:
        self._settings, self._engine = settings, engine
        self._greeting: Greeting | None = None
        self._version = -1
        self.ledger = Ledger(settings.run_path, settings.incarnation)
        self.loop = asyncio.new_event_loop()
        self._channel = Channel(settings.url, settings.token, lambda: self._greet(greeting), connect=connect)
        self._thread = threading.Thread(target=self.loop.run_forever, name="aworld-train-rollouts", daemon=True)
        self._thread.start()

    def run(self, submissions: Sequence[Submission]) -> list[Outcome]:
        """The outcomes in the order of the submissions; blocks, and meanwhile the engine has this thread.

        Raises ChannelError where there is no service to be had, or where it refuses this trainer.
        """
        future = asyncio.run_coroutine_threadsafe(self._all(submissions), self.loop)
        try:
            self._engine.drive(future)
        except BaseException:
            future.cancel()
            raise
        return future.result()

    async def rollout(self, submission: Submission) -> Outcome:
        """One outcome, awaited in any event loop. A cancelled caller cancels the rollout."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._one(submission), self.loop))

    def close(self) -> None:
        """Ends the channel and its thread; what still runs fails."""
        if self._thread.is_alive():
            self._wait(self._channel.close())
            self._wait(self._engine.close())
            self.loop.call_soon_threadsafe(self.loop.stop)
            self._thread.join()
            self.loop.close()
            self.ledger.close()

    def _wait(self, coroutine: Coroutine[Any, Any, Value]) -> Value:
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result()

    def _greet(self, greeting: Callable[[], Greeting]) -> Greeting:
        self._greeting = greeting()
        return self._greeting

    async def _all(self, submissions: Sequence[Submission]) -> list[Outcome]:
        tasks = [asyncio.ensure_future(self._one(each)) for each in submissions]
        try:
            return list(await asyncio.gather(*tasks))
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _one(self, submission: Submission) -> Outcome:
        settings = self._settings
        key = to_key(settings.run, settings.incarnation, submission.partition, submission.step, submission.uid, submission.sample)
        deadline = settings.deadline_seconds
        message = {
            "key": key,
            "partition": submission.partition,
            "step": submission.step,
            "uid": submission.uid,
            "sample": submission.sample,
            "row": submission.row,
            "sampling": submission.sampling,
            "deadlineMs": None if deadline is None else max(1, round(deadline * 1000)),
        }
        if (await self._channel.settings()).reward != "service":
            raise ChannelError("CONFIG_INVALID", "The rollout service leaves the reward to the trainer, which has none here; set a reward function.")
        try:
            result = await self._channel.rollout(message, lambda call: self._serve(key, call, submission.sampling), lambda *lost: self._lost(key, *lost))
        except ChannelError as error:
            if not error.code.startswith("ROLLOUT_"):
                raise  # not this rollout failed, but the way to all of them
            return Outcome(key, [], error=error)
        error = failure_of(result)
        try:
            rows = read_rows(result, key, self._vocabulary_size, scored=error is None)
            if not rows and error is None:
                raise invalid_result(key, "it has no row")
        except ChannelError as refusal:
            self._channel.refuse(key, refusal)
            return Outcome(key, [], error=refusal)
        self._channel.accept(key)
        header = result.header
        return Outcome(key, rows, header.get("reward"), header.get("scores") or {}, error)

    @property
    def _vocabulary_size(self) -> int:
        assert self._greeting is not None
        return int(self._greeting.hello["model"]["vocabularySize"])

    async def _serve(self, key: str, call: ModelCall, sampling: Mapping[str, Any]) -> Sampled:
        sampled = await self._engine.sample(call, sampling)
        self.ledger.write("sampled", {"key": key, "id": str(call.id), "version": sampled.max_version, "tokens": len(sampled.ids)})
        if sampled.max_version > self._version:
            self._version = sampled.max_version
            self._channel.weights(sampled.max_version)
        return sampled

    def _lost(self, key: str, call: ModelCall, tokens: int, reason: str) -> None:
        if tokens > 0:
            self.ledger.write("undelivered", {"key": key, "id": str(call.id), "tokens": tokens, "reason": reason})
