"""One WebSocket of a channel, from `hello` to its end."""

from __future__ import annotations

import asyncio
import logging
import time
from array import array
from dataclasses import dataclass
from typing import Any, Callable, Mapping

from .errors import ChannelError
from .frames import PROTOCOL, Frame, decode_frame, encode_frame, uint8
from .open_rollout import ModelCall, OpenRollout, Sampled
from .transport import Transport, TransportClosed

logger = logging.getLogger(__name__)

_REMEMBERED_ANSWERS = 4096


@dataclass(frozen=True)
class Greeting:
    """`hello` without type and protocol, its arrays, and the model's files for a service that lacks them."""

    hello: Mapping[str, Any]
    arrays: Mapping[str, array]
    files: Callable[[], Mapping[str, bytes]]


@dataclass(frozen=True)
class Settings:
    """What the service decides: deadline of a rollout (seconds or None), `reward` service or native, how rows are selected."""

    rollout_seconds: float | None = None
    reward: str = "service"
    row_selection: str = "all"
    service: str = ""


class Connection:
    """Sends in order through one queue; reads until the transport closes; a call is answered here or counted as lost."""

    def __init__(self, transport: Transport, ping_seconds: float, dead_seconds: float) -> None:
        self._transport = transport
        self._ping_seconds = ping_seconds
        self._dead_seconds = dead_seconds
        self._outbox: asyncio.Queue[str | bytes] = asyncio.Queue()
        self._aborted: set[int] = set()
        self._calls: set[int] = set()
        self._answered: dict[int, Callable[[], None]] = {}
        self._open = True

    async def greet(self, greeting: Greeting, welcome_seconds: float, ready_seconds: float) -> Settings:
        """Says hello, sends files when asked, and returns when the service is ready."""
        hello = {"type": "hello", "protocol": PROTOCOL, **greeting.hello}
        await self._transport.send(encode_frame(hello, greeting.arrays))
        welcome = await self._expect("welcome", welcome_seconds)
        settings = _to_settings(welcome.header)
        if welcome.header.get("needFiles"):
            files = await asyncio.to_thread(greeting.files)
            arrays = {name: uint8(data) for name, data in files.items()}
            await self._transport.send(encode_frame({"type": "files", "files": [{"name": name} for name in files]}, arrays))
        await self._expect("ready", ready_seconds)
        return settings

    def post(self, header: Mapping[str, Any], arrays: Mapping[str, array] | None = None) -> bool:
        """Queues a message; false when the connection has ended."""
        if self._open:
            self._outbox.put_nowait(encode_frame(header, arrays))
        return self._open

    async def read(self, receive: Callable[[Connection, Frame], None]) -> None:
        """Hands every message to `receive`; ends by raising TransportClosed, or ChannelError when the service says so."""
        writer = asyncio.create_task(self._write())
        keeper = asyncio.create_task(self._keep_alive())
        reader = asyncio.create_task(self._read(receive))
        tasks = {writer, keeper, reader}
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            # The service's own word, when it came, says more than the end of the socket that followed it.
            (reader if reader in done else done.pop()).result()
        finally:
            self._open = False
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def serve(self, call: ModelCall, rollout: OpenRollout) -> asyncio.Task[None]:
        """Lets the policy answer a call. What it sampled is sent, or reported as lost when nobody waits for it any more."""
        self._calls.add(call.id)
        return asyncio.create_task(self._serve(call, rollout))

    async def _serve(self, call: ModelCall, rollout: OpenRollout) -> None:
        try:
            sampled = await rollout.serve(call)
        except ChannelError as error:
            self.post({"type": "generate-failed", "id": call.id, "error": error.to_record()})
            return
        except Exception as error:
            logger.exception("the model call %s of %s failed", call.id, call.key)
            failed = ChannelError("POLICY_FAILED", f"{type(error).__name__}: {error}")
            self.post({"type": "generate-failed", "id": call.id, "error": failed.to_record()})
            return
        finally:
            self._calls.discard(call.id)
        # An answer that nobody waits for is sent all the same: the service counts what was sampled.
        sent = self._post_sampled(call, sampled)
        tokens = len(sampled.ids)
        if call.id in self._aborted:
            self._aborted.discard(call.id)
            rollout.lost(call, tokens, "aborted")
        elif not sent:
            rollout.lost(call, tokens, "connection-lost")
        elif not rollout.open:
            rollout.lost(call, tokens, "rollout-closed")
        else:
            self._answered[call.id] = lambda: rollout.lost(call, tokens, "aborted")
            if len(self._answered) > _REMEMBERED_ANSWERS:
                del self._answered[next(iter(self._answered))]

    def abort(self, id: int) -> None:
        """The service waits for this call no more. A trainer's client cannot stop one request, so its tokens count as lost, also
        when the answer was under way already."""
        if id in self._calls:
            self._aborted.add(id)
        elif id in self._answered:
            self._answered.pop(id)()

    async def close(self) -> None:
        self._open = False
        try:
            await asyncio.wait_for(self._transport.close(), 5)
        except (TransportClosed, asyncio.TimeoutError, OSError):
            pass

    def _post_sampled(self, call: ModelCall, sampled: Sampled) -> bool:
        header = {"type": "generated", "id": call.id, "finish": sampled.finish, "minVersion": sampled.min_version, "maxVersion": sampled.max_version}
        return self.post(header, {"ids": sampled.ids, "logprobs": sampled.logprobs})

    async def _expect(self, kind: str, seconds: float) -> Frame:
        try:
            frame = decode_frame(await asyncio.wait_for(self._transport.receive(), seconds))
        except asyncio.TimeoutError:
            raise ChannelError("CHANNEL_TIMEOUT", f'The rollout service did not send "{kind}" within {seconds:g} s.', True) from None
        _raise_refusal(frame)
        if frame.type != kind:
            raise ChannelError("CHANNEL_PROTOCOL", f'The rollout service sent "{frame.type}" where "{kind}" belongs; use one version of AWorld Train on both sides.')
        return frame

    async def _read(self, receive: Callable[[Connection, Frame], None]) -> None:
        while True:
            frame = decode_frame(await self._transport.receive())
            _raise_refusal(frame)
            try:
                receive(self, frame)
            except (KeyError, TypeError, ValueError) as error:
                message = f'A message "{frame.type}" of the rollout service lacks what it needs ({type(error).__name__}: {error}); use one version of AWorld Train on both sides.'
                raise ChannelError("CHANNEL_PROTOCOL", message) from error

    async def _write(self) -> None:
        while True:
            await self._transport.send(await self._outbox.get())

    async def _keep_alive(self) -> None:
        while True:
            await asyncio.sleep(self._ping_seconds)
            await self._transport.ping()
            if time.monotonic() - self._transport.last_heard > self._dead_seconds:
                # A busy event loop reads late: what has arrived meanwhile counts.
                await asyncio.sleep(min(1.0, self._ping_seconds))
                silence = time.monotonic() - self._transport.last_heard
                if silence > self._dead_seconds:
                    raise TransportClosed(None, f"silent for {silence:.0f} s")


def _raise_refusal(frame: Frame) -> None:
    if frame.type == "rejected":
        raise ChannelError.from_record(frame.header.get("error"), "CHANNEL_REJECTED", "The rollout service rejected this worker.")
    if frame.type == "error":
        raise ChannelError("CHANNEL_PROTOCOL", f"The rollout service could not read a message: {frame.header.get('message')}; use one version of AWorld Train on both sides.")


def _to_settings(welcome: Mapping[str, Any]) -> Settings:
    settings = welcome.get("settings") or {}
    milliseconds = settings.get("rolloutTimeoutMs")
    return Settings(
        rollout_seconds=None if milliseconds is None else milliseconds / 1000,
        reward=str(settings.get("reward", "service")),
        row_selection=str(settings.get("rowSelection", "all")),
        service=str(welcome.get("service", "")),
    )
