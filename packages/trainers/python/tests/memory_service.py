"""A rollout service in memory: the other end of the channel's transport, driven by a test."""

from __future__ import annotations

import asyncio
import time
from array import array
from typing import Any, Mapping

from aworld_train_bridge.channel import Channel
from aworld_train_bridge.channel_times import ChannelTimes
from aworld_train_bridge.connection import Greeting
from aworld_train_bridge.errors import ChannelError
from aworld_train_bridge.frames import Frame, decode_frame, encode_frame, float32, int32
from aworld_train_bridge.open_rollout import ModelCall, Sampled
from aworld_train_bridge.transport import TransportClosed

HELLO = {"run": "r", "incarnation": "i", "worker": "w"}
WELCOME = {"type": "welcome", "protocol": 2, "service": "0", "needFiles": False, "graceMs": 30000, "pingMs": 15000}
SETTINGS = {"rolloutTimeoutMs": None, "reward": "service", "rowSelection": "all"}


class MemoryConnection:
    """Both ends: the channel calls send, receive, ping and close; a test calls hear, say and drop."""

    def __init__(self) -> None:
        self.to_service: asyncio.Queue[str | bytes | None] = asyncio.Queue()
        self.to_client: asyncio.Queue[str | bytes | TransportClosed] = asyncio.Queue()
        self.last_heard = time.monotonic()
        self.answers_pings = True
        self._closed: TransportClosed | None = None

    async def send(self, data: str | bytes) -> None:
        if self._closed is not None:
            raise self._closed
        self.to_service.put_nowait(data)

    async def receive(self) -> str | bytes:
        if self._closed is not None and self.to_client.empty():
            raise self._closed
        data = await self.to_client.get()
        if isinstance(data, TransportClosed):
            raise data
        self.last_heard = time.monotonic()
        return data

    async def ping(self) -> None:
        if self.answers_pings:
            self.last_heard = time.monotonic()

    async def close(self, code: int = 1000) -> None:
        self._closed = self._closed or TransportClosed(code)
        self.to_service.put_nowait(None)

    async def hear(self, kind: str) -> Frame:
        data = await asyncio.wait_for(self.to_service.get(), 60)
        if data is None:
            raise AssertionError(f"the channel closed where {kind} was expected")
        frame = decode_frame(data)
        if frame.type != kind:
            raise AssertionError(f"{frame.type} came where {kind} was expected: {dict(frame.header)}")
        return frame

    def say(self, header: Mapping[str, Any], arrays: Mapping[str, array] | None = None) -> None:
        self.to_client.put_nowait(encode_frame(header, arrays))

    def drop(self, code: int | None = None) -> None:
        self._closed = TransportClosed(code, "dropped")
        self.to_client.put_nowait(self._closed)

    async def greet(self, **settings: Any) -> Frame:
        hello = await self.hear("hello")
        self.say({**WELCOME, "settings": {**SETTINGS, **settings}})
        self.say({"type": "ready"})
        return hello


class MemoryService:
    """Connections arrive in order; `refusals` are raised by the next attempts instead."""

    def __init__(self) -> None:
        self.connections: asyncio.Queue[MemoryConnection] = asyncio.Queue()
        self.refusals: list[ChannelError] = []
        self.attempts = 0

    async def connect(self, url: str, token: str) -> MemoryConnection:
        self.attempts += 1
        if self.refusals:
            raise self.refusals.pop(0)
        connection = MemoryConnection()
        self.connections.put_nowait(connection)
        return connection

    async def next(self) -> MemoryConnection:
        return await asyncio.wait_for(self.connections.get(), 60)

    def channel(self, files: Mapping[str, bytes] | None = None, **times: float) -> Channel:
        greeting = Greeting(HELLO, {"renderedIds": int32([1, 2, 3])}, lambda: files or {})
        quick = {"connect": 2, "reconnect": 10, "greet": 10, "ready": 10, "backoff": 0.01, "backoff_limit": 0.02, "drain": 0.2, "attempts": 1}
        return Channel("ws://memory", "token", lambda: greeting, ChannelTimes(**{**quick, **times}), self.connect)


def submission(key: str = "r/i/train/1/u/0", **more: Any) -> dict[str, Any]:
    return {"key": key, "partition": "train", "step": 1, "uid": "u", "sample": 0, "row": {"prompt": []}, "sampling": {}, "deadlineMs": None, **more}


def generate(id: int, key: str = "r/i/train/1/u/0", max_tokens: int = 8) -> dict[str, Any]:
    sampling = {"temperature": 1.0, "topP": 1.0, "topK": 0, "maxTokens": max_tokens, "stop": []}
    return {"type": "generate", "id": id, "key": key, "agent": "main", "trajectory": "main", "turn": 0, "sampling": sampling}


def result(key: str = "r/i/train/1/u/0", **more: Any) -> dict[str, Any]:
    return {"type": "result", "key": key, "status": "done", "stopReason": "finished", "reward": 1.0, "scores": {}, "error": None, "rows": [], **more}


class Policy:
    """Answers every call with its prompt's ids plus one, when `gate` is open."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.gate.set()
        self.calls: list[ModelCall] = []
        self.lost_calls: list[tuple[int, int, str]] = []

    async def serve(self, call: ModelCall) -> Sampled:
        self.calls.append(call)
        await self.gate.wait()
        ids = [id + 1 for id in call.prompt_ids]
        return Sampled(int32(ids), float32([-0.5] * len(ids)), "stop", 3, 4)

    def lost(self, call: ModelCall, tokens: int, reason: str) -> None:
        self.lost_calls.append((call.id, tokens, reason))
