"""A WebSocket to the rollout service, by aiohttp, which every framework brings."""

from __future__ import annotations

import time
from typing import Any, Protocol

from .errors import ChannelError
from .frames import MAX_FRAME_BYTES


class TransportClosed(Exception):
    """The other side is gone; `code` is the close code, None when there was none."""

    def __init__(self, code: int | None, reason: str = "") -> None:
        super().__init__(code, reason)
        self.code = code
        self.reason = reason


class Transport(Protocol):
    """A duplex connection of whole messages. `last_heard` is the monotonic time of the last sign of life, in seconds."""

    last_heard: float

    async def send(self, data: str | bytes) -> None: ...

    async def receive(self) -> str | bytes: ...

    async def ping(self) -> None: ...

    async def close(self, code: int = 1000) -> None: ...


class AiohttpTransport:
    """The real transport. `receive` answers pings, notes pongs, and raises TransportClosed at the end."""

    def __init__(self, session: Any, socket: Any) -> None:
        self._session = session
        self._socket = socket
        self.last_heard = time.monotonic()

    async def send(self, data: str | bytes) -> None:
        try:
            if isinstance(data, str):
                await self._socket.send_str(data)
            else:
                await self._socket.send_bytes(data)
        except (ConnectionError, RuntimeError) as error:
            raise TransportClosed(self._socket.close_code, str(error)) from error

    async def receive(self) -> str | bytes:
        from aiohttp import WSMsgType

        while True:
            message = await self._socket.receive()
            self.last_heard = time.monotonic()
            if message.type in (WSMsgType.TEXT, WSMsgType.BINARY):
                return message.data
            if message.type is WSMsgType.PING:
                await self._pong(message.data)
            elif message.type is not WSMsgType.PONG:
                raise TransportClosed(self._socket.close_code, str(message.extra or message.data or ""))

    async def ping(self) -> None:
        try:
            await self._socket.ping()
        except (ConnectionError, RuntimeError) as error:
            raise TransportClosed(self._socket.close_code, str(error)) from error

    async def close(self, code: int = 1000) -> None:
        await self._socket.close(code=code)
        await self._session.close()

    async def _pong(self, data: bytes) -> None:
        try:
            await self._socket.pong(data)
        except (ConnectionError, RuntimeError) as error:
            raise TransportClosed(self._socket.close_code, str(error)) from error


async def connect_aiohttp(url: str, token: str) -> AiohttpTransport:
    """Opens the WebSocket `url` with a bearer token. Raises ChannelError CHANNEL_UNAUTHORIZED, _UNREACHABLE or _REFUSED."""
    import aiohttp

    session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None, sock_connect=30), trust_env=False)
    try:
        socket = await session.ws_connect(
            url,
            headers={"Authorization": f"Bearer {token}"} if token else {},
            autoping=False,
            autoclose=True,
            max_msg_size=MAX_FRAME_BYTES,
            timeout=aiohttp.ClientWSTimeout(ws_close=5),
        )
    except BaseException as error:
        await session.close()
        if isinstance(error, aiohttp.WSServerHandshakeError):
            raise refused_handshake(url, error.status) from error
        if isinstance(error, aiohttp.InvalidURL):
            raise ChannelError("CONFIG_INVALID", f'"{url}" is no WebSocket URL; set AWORLD_TRAIN_CHANNEL to ws://host:port/v1/channel.') from error
        if isinstance(error, (aiohttp.ClientError, OSError)):
            raise ChannelError("CHANNEL_UNREACHABLE", f"No rollout service answers at {url} ({error}); start it, or set AWORLD_TRAIN_CHANNEL.", True) from error
        raise
    return AiohttpTransport(session, socket)


def refused_handshake(url: str, status: int) -> ChannelError:
    """What an HTTP status instead of the upgrade means; only a server that is busy or starting is asked again."""
    if status in (401, 403):
        return ChannelError(
            "CHANNEL_UNAUTHORIZED",
            f"The rollout service at {url} refused the token (HTTP {status}); set AWORLD_TRAIN_CHANNEL_TOKEN or AWORLD_TRAIN_CHANNEL_TOKEN_FILE to its token.",
        )
    return ChannelError("CHANNEL_REFUSED", f"{url} answered HTTP {status} instead of opening the channel; check the URL.", status >= 500 or status == 429)
