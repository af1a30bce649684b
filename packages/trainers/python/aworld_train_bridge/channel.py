"""The channel to the rollout service: rollouts go up, their model calls come down, over one WebSocket that may break."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from dataclasses import dataclass, field
from typing import Any, Awaitable, Callable, Mapping

from .channel_times import ChannelTimes
from .connection import Connection, Greeting, Settings
from .errors import ChannelError
from .frames import Frame
from .open_rollout import LostCall, ModelCall, OpenRollout, ServeCall
from .transport import Transport, TransportClosed, connect_aiohttp

logger = logging.getLogger(__name__)

Connect = Callable[[str, str], Awaitable[Transport]]


@dataclass
class Channel:
    """One connection of this process, shared by all its rollouts; `greeting` is asked for once."""

    url: str
    token: str
    greeting: Callable[[], Greeting]
    times: ChannelTimes = field(default_factory=ChannelTimes)
    connect: Connect = connect_aiohttp

    def __post_init__(self) -> None:
        self._rollouts: dict[str, OpenRollout] = {}
        self._farewells: dict[str, Mapping[str, Any]] = {}
        self._connection: Connection | None = None
        self._task: asyncio.Task[None] | None = None
        self._greeting: Greeting | None = None
        self._fatal: ChannelError | None = None
        self._closed = False
        self._ever_ready = False
        self._settings: asyncio.Future[Settings] | None = None

    async def settings(self) -> Settings:
        """What the service said in `welcome`; connects when needed. Raises ChannelError when no service can be had."""
        self._start()
        assert self._settings is not None
        return await asyncio.shield(self._settings)

    async def rollout(self, submission: Mapping[str, Any], serve: ServeCall, lost: LostCall) -> Frame:
        """Submits {key, …} and serves its model calls until the result arrives, which is returned.

        The deadline runs from `started`; while queued only the channel must live. A cancelled caller cancels the rollout. The
        key is closed before this returns or raises. `lost` hears (call, tokens, reason) of sampled tokens that no call of
        the agent received: aborted, rollout-closed or connection-lost.
        """
        key = str(submission["key"])
        if key in self._rollouts:
            raise ChannelError("ROLLOUT_CONFLICT", f"The rollout {key} runs in this process already.")
        self._start()
        rollout = OpenRollout(key, submission, serve, lost, asyncio.get_running_loop().create_future())
        self._rollouts[key] = rollout
        try:
            self._send({"type": "submit", **submission})
            result = await rollout.result
        except asyncio.CancelledError:
            self._withdraw(rollout, "The caller of the rollout was cancelled.")
            raise
        except ChannelError as error:
            self._withdraw(rollout, error.message)
            await rollout.drain(self.times.drain)
            raise
        self._forget(rollout)
        await rollout.drain(self.times.drain)
        return result

    def accept(self, key: str) -> None:
        """Tells the service that the rows of a result were handed on."""
        self._say_last({"type": "accepted", "key": key})

    def refuse(self, key: str, error: ChannelError) -> None:
        """Tells the service that a result could not be turned into rows."""
        self._say_last({"type": "refused", "key": key, "error": error.to_record()})

    def weights(self, version: int) -> None:
        """Tells the service that weights of `version` sample from now on."""
        self._send({"type": "weights", "version": version})

    async def close(self) -> None:
        """Ends the connection and fails what still runs."""
        self._closed = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._fail_all(ChannelError("CHANNEL_CLOSED", "The channel was closed."))

    # The life of the connection.

    def _start(self) -> None:
        if self._fatal is not None:
            raise self._fatal
        if self._closed:
            raise ChannelError("CHANNEL_CLOSED", "The channel was closed.")
        if self._task is None or self._task.done():
            self._settings = asyncio.get_running_loop().create_future()
            self._settings.add_done_callback(lambda future: future.cancelled() or future.exception())
            self._task = asyncio.create_task(self._live(), name="aworld-train-channel")

    async def _live(self) -> None:
        try:
            await self._stay_connected()
        except asyncio.CancelledError:
            raise
        except ChannelError as error:
            if not error.retryable:
                self._fatal = error
            self._fail_all(error)
        except Exception as error:
            logger.exception("the channel failed")
            self._fail_all(ChannelError("CHANNEL_FAILED", f"The channel failed: {type(error).__name__}: {error}; report this.", True))

    async def _stay_connected(self) -> None:
        down_since, pause = time.monotonic(), self.times.backoff
        while True:
            try:
                connection = await self._open()
                down_since, pause = None, self.times.backoff
                await connection.read(self._receive)
            except ChannelError as error:
                if not error.retryable:
                    raise
                cause = error
            except TransportClosed as error:
                cause = ChannelError("CHANNEL_LOST", f"The connection to {self.url} was lost ({error.code}{': ' + error.reason if error.reason else ''}).", True)
            finally:
                await self._drop()
            if down_since is None:
                down_since = time.monotonic()
                logger.warning("%s; connecting again", cause)
            patience = self.times.reconnect if self._ever_ready else self.times.connect
            if time.monotonic() - down_since + pause > patience:
                raise ChannelError(cause.code, f"{cause.message} Tried for {patience:g} s.", True) from cause
            await asyncio.sleep(pause * random.uniform(0.75, 1.25))
            pause = min(pause * 2, self.times.backoff_limit)

    async def _open(self) -> Connection:
        if self._greeting is None:
            self._greeting = await asyncio.to_thread(self.greeting)
        try:
            transport = await asyncio.wait_for(self.connect(self.url, self.token), self.times.greet)
        except asyncio.TimeoutError:
            message = f"{self.url} did not open the channel within {self.times.greet:g} s; check that the rollout service is there."
            raise ChannelError("CHANNEL_TIMEOUT", message, True) from None
        connection = Connection(transport, self.times.ping, self.times.dead)
        try:
            settings = await connection.greet(self._greeting, self.times.greet, self.times.ready)
        except BaseException:
            await connection.close()
            raise
        self._connection = connection
        self._ever_ready = True
        if self._settings is not None and not self._settings.done():
            self._settings.set_result(settings)
        self._rollout_seconds = settings.rollout_seconds
        for message in self._farewells.values():
            connection.post(message)
        self._farewells.clear()
        for rollout in list(self._rollouts.values()):
            if not rollout.result.done():
                connection.post({"type": "submit", **rollout.submission})
        return connection

    async def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    def _fail_all(self, error: ChannelError) -> None:
        if self._settings is not None and not self._settings.done():
            self._settings.set_exception(error)
        for rollout in list(self._rollouts.values()):
            rollout.fail(error)

    # What is said and heard.

    def _send(self, message: Mapping[str, Any]) -> bool:
        if self._connection is None:
            return False
        self._connection.post(message)
        return True

    def _say_last(self, message: Mapping[str, Any]) -> None:
        """What ends a key is said on the next connection when there is none now."""
        if not self._send(message) and not self._closed:
            self._farewells[str(message["key"])] = message

    def _withdraw(self, rollout: OpenRollout, reason: str) -> None:
        self._forget(rollout)
        if self._fatal is None:
            self._say_last({"type": "cancel", "key": rollout.key, "reason": reason})

    def _forget(self, rollout: OpenRollout) -> None:
        rollout.close()
        self._rollouts.pop(rollout.key, None)

    def _receive(self, connection: Connection, frame: Frame) -> None:
        header = frame.header
        if frame.type == "generate":
            self._generate(connection, frame)
            return
        if frame.type == "abort":
            connection.abort(int(header["id"]))
            return
        rollout = self._rollouts.get(str(header.get("key")))
        if rollout is None:
            return
        if frame.type == "result":
            rollout.close()
            if not rollout.result.done():
                rollout.result.set_result(frame)
        elif frame.type == "started":
            rollout.start_deadline(self._deadline(rollout))
        elif frame.type == "queued":
            rollout.stop_deadline()

    def _deadline(self, rollout: OpenRollout) -> float:
        own = rollout.submission.get("deadlineMs")
        seconds = own / 1000 if own is not None else self._rollout_seconds
        return self.times.rollout if seconds is None else seconds * self.times.attempts + self.times.margin

    def _generate(self, connection: Connection, frame: Frame) -> None:
        header = frame.header
        call = ModelCall(
            id=int(header["id"]),
            key=str(header["key"]),
            trajectory=str(header["trajectory"]),
            turn=int(header.get("turn", 0)),
            sampling=header.get("sampling") or {},
            prompt_ids=frame.arrays["promptIds"],
        )
        rollout = self._rollouts.get(call.key)
        if rollout is None or not rollout.open:
            error = ChannelError("ROLLOUT_CLOSED", f"The rollout {call.key} is not open in this process; nothing was sampled.")
            connection.post({"type": "generate-failed", "id": call.id, "error": error.to_record()})
            return
        task = connection.serve(call, rollout)
        rollout.calls.add(task)
        task.add_done_callback(rollout.calls.discard)

