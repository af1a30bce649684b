"""A rollout service on a real socket, driven by a test: it takes a token, greets, and hands connections over."""

from __future__ import annotations

import asyncio
from array import array
from typing import Any, Mapping

from aiohttp import WSMsgType, web

from aworld_train_bridge.frames import Frame, decode_frame, encode_frame, float32, int32, uint8

TOKEN = "secret"


class Peer:
    """The service's end of a connection."""

    def __init__(self, socket: web.WebSocketResponse) -> None:
        self.socket = socket
        self.held: list[Frame] = []

    async def hear(self, kind: str) -> Frame:
        """The next message of `kind`. Those that the bridge sends unasked are kept for later."""
        for frame in self.held:
            if frame.type == kind:
                self.held.remove(frame)
                return frame
        while True:
            message = await asyncio.wait_for(self.socket.receive(), 30)
            if message.type not in (WSMsgType.TEXT, WSMsgType.BINARY):
                raise AssertionError(f"{message.type} came where {kind} was expected")
            frame = decode_frame(message.data)
            if frame.type == kind:
                return frame
            if frame.type not in ("submit", "accepted", "refused", "weights"):
                raise AssertionError(f"{frame.type} came where {kind} was expected: {dict(frame.header)}")
            self.held.append(frame)

    async def say(self, header: Mapping[str, Any], arrays: Mapping[str, array] | None = None) -> None:
        data = encode_frame(header, arrays)
        await (self.socket.send_str(data) if isinstance(data, str) else self.socket.send_bytes(data))

    async def greet(self, need_files: bool = False, **settings: Any) -> tuple[Frame, Frame | None]:
        hello = await self.hear("hello")
        given = {"rolloutTimeoutMs": None, "reward": "service", "rowSelection": "all", **settings}
        await self.say({"type": "welcome", "protocol": 2, "service": "0", "needFiles": need_files, "graceMs": 30000, "pingMs": 15000, "settings": given})
        files = await self.hear("files") if need_files else None
        await self.say({"type": "ready"})
        return hello, files

    async def rollout(self, prompt: list[int], turns: int = 1, branches: int = 1, **result: Any) -> dict[str, Any]:
        """Plays one rollout of `turns` model calls, and returns its submission. Of two branches the first has one turn, the last all."""
        submit = dict((await self.hear("submit")).header)
        key = submit["key"]
        await self.say({"type": "queued", "key": key})
        await self.say({"type": "started", "key": key})
        ids, mask, logprobs = list(prompt), [0] * len(prompt), [0.0] * len(prompt)
        ends: list[int] = []
        for turn in range(turns):
            sampling = {"temperature": 1.0, "topP": 1.0, "topK": 0, "maxTokens": 4, "stop": []}
            await self.say({"type": "generate", "id": turn, "key": key, "agent": "main", "trajectory": "main", "turn": turn, "sampling": sampling}, {"promptIds": int32(ids)})
            generated = await self.hear("generated")
            ids += generated.arrays["ids"].tolist()
            logprobs += generated.arrays["logprobs"].tolist()
            mask += [1] * len(generated.arrays["ids"])
            ends.append(len(ids))
            if turn + 1 < turns:
                ids, mask, logprobs = [*ids, 1], [*mask, 0], [*logprobs, 0.0]
        lengths = [ends[0], ends[-1]][-branches:]
        header = {
            "type": "result", "key": key, "status": "done", "stopReason": "finished", "reward": 0.5, "scores": {}, "error": None, "turns": turns,
            "generateMs": 1.0, "toolMs": 0.0, "omitted": {}, "answer": None, "solution": None,
            "rows": [{"agent": "main", "trajectory": "main", "promptLength": len(prompt), "length": n, "minVersion": 1, "maxVersion": 1, "turns": [], "reward": 0.5} for n in lengths],
            **result,
        }  # fmt: skip
        arrays: dict[str, array] = {}
        for index, n in enumerate(lengths[: len(header["rows"])]):
            arrays |= {f"ids.{index}": int32(ids[:n]), f"mask.{index}": uint8(mask[:n]), f"logprobs.{index}": float32(logprobs[:n])}
        await self.say(header, arrays)
        return submit


class SocketService:
    """`async with SocketService() as service`; `service.next()` is the next connection."""

    def __init__(self) -> None:
        self.peers: asyncio.Queue[Peer] = asyncio.Queue()
        self.statuses: list[int] = []

    async def __aenter__(self) -> SocketService:
        app = web.Application()
        app.router.add_get("/v1/channel", self._accept)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"ws://127.0.0.1:{self._runner.addresses[0][1]}/v1/channel"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    async def next(self) -> Peer:
        return await asyncio.wait_for(self.peers.get(), 30)

    async def _accept(self, request: web.Request) -> web.StreamResponse:
        if self.statuses:
            return web.Response(status=self.statuses.pop(0))
        if request.headers.get("Authorization") != f"Bearer {TOKEN}":
            return web.Response(status=401)
        socket = web.WebSocketResponse(max_msg_size=1 << 30, autoping=True)
        await socket.prepare(request)
        peer = Peer(socket)
        self.peers.put_nowait(peer)
        while not socket.closed:
            await asyncio.sleep(0.02)
        return socket
