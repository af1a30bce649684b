"""The channel over aiohttp's real sockets."""

import asyncio
import struct
import unittest

from aworld_train_bridge.channel import Channel
from aworld_train_bridge.channel_times import ChannelTimes
from aworld_train_bridge.connection import Greeting
from aworld_train_bridge.errors import ChannelError
from aworld_train_bridge.frames import float32, int32
from aworld_train_bridge.open_rollout import Sampled
from socket_service import TOKEN, SocketService

QUICK = ChannelTimes(connect=0.5, reconnect=5, greet=2, ready=2, backoff=0.01, backoff_limit=0.05, drain=1)


def channel(url: str, token: str = TOKEN, times: ChannelTimes = QUICK) -> Channel:
    greeting = Greeting({"run": "r", "incarnation": "i", "worker": "w"}, {"renderedIds": int32([1])}, lambda: {"tokenizer.json": bytes(5_000_000)})
    return Channel(url, token, lambda: greeting, times)


class Samples:
    def __init__(self) -> None:
        self.lost_tokens: list[tuple[int, str]] = []
        self.prompts: list[list[int]] = []

    async def serve(self, call):
        self.prompts.append(call.prompt_ids.tolist())
        return Sampled(int32([7, 8]), float32([-0.1, -0.2]), "stop", 1, 1)

    def lost(self, call, tokens, reason):
        self.lost_tokens.append((tokens, reason))


def submission(n: int = 0) -> dict:
    return {"key": f"k{n}", "deadlineMs": None}


class TransportTest(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self) -> None:
        self.service = SocketService()
        await self.service.__aenter__()
        self.addAsyncCleanup(self.service.__aexit__)
        self.samples = Samples()

    def start(self, made: Channel, n: int = 0) -> asyncio.Task:
        self.addAsyncCleanup(made.close)
        task = asyncio.create_task(made.rollout(submission(n), self.samples.serve, self.samples.lost))
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
        return task

    async def code(self, task: asyncio.Task) -> str:
        with self.assertRaises(ChannelError) as raised:
            await asyncio.wait_for(task, 20)
        return raised.exception.code

    async def test_a_rollout_goes_over_a_socket_with_files_of_megabytes(self) -> None:
        task = self.start(channel(self.service.url))
        peer = await self.service.next()
        _, files = await peer.greet(need_files=True)
        self.assertEqual(len(files.arrays["tokenizer.json"]), 5_000_000)
        await peer.rollout([1, 2, 3], turns=2)
        result = await asyncio.wait_for(task, 10)
        self.assertEqual(result.arrays["ids.0"].tolist(), [1, 2, 3, 7, 8, 1, 7, 8])
        self.assertEqual(self.samples.prompts, [[1, 2, 3], [1, 2, 3, 7, 8, 1]])

    async def test_no_token_or_a_wrong_one(self) -> None:
        for token in ("", "wrong"):
            self.assertEqual(await self.code(self.start(channel(self.service.url, token))), "CHANNEL_UNAUTHORIZED")

    async def test_another_status_and_no_server(self) -> None:
        self.service.statuses = [404]
        self.assertEqual(await self.code(self.start(channel(self.service.url))), "CHANNEL_REFUSED")
        self.service.statuses = [503, 503]
        task = self.start(channel(self.service.url))
        await (await self.service.next()).greet()
        self.assertFalse(task.done())
        self.assertEqual(await self.code(self.start(channel("ws://127.0.0.1:9/v1/channel"))), "CHANNEL_UNREACHABLE")
        self.assertEqual(await self.code(self.start(channel("ws://"))), "CONFIG_INVALID")

    async def test_a_server_that_never_upgrades(self) -> None:
        server = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
        self.addCleanup(server.close)
        port = server.sockets[0].getsockname()[1]
        times = ChannelTimes(connect=0.5, greet=0.3, backoff=0.01)
        self.assertEqual(await self.code(self.start(channel(f"ws://127.0.0.1:{port}/v1/channel", times=times))), "CHANNEL_TIMEOUT")

    async def test_a_connection_cut_in_the_middle_of_a_frame_is_made_again(self) -> None:
        task = self.start(channel(self.service.url))
        peer = await self.service.next()
        await peer.greet()
        await peer.hear("submit")
        transport = peer.socket._req.transport
        # A WebSocket frame of 1000 bytes of which 10 arrive.
        transport.write(b"\x82\x7e" + struct.pack(">H", 1000) + bytes(10))
        await asyncio.sleep(0.05)
        with self.assertLogs("aworld_train_bridge.channel", "WARNING"):
            transport.abort()
            again = await self.service.next()
        await again.greet()
        await again.rollout([1])
        await asyncio.wait_for(task, 10)

    async def test_a_frame_that_is_half_of_one_is_a_typed_error(self) -> None:
        task = self.start(channel(self.service.url))
        peer = await self.service.next()
        await peer.greet()
        await peer.hear("submit")
        await peer.socket.send_bytes(struct.pack("<I", 100) + b'{"type":"generate"')
        self.assertEqual(await self.code(task), "CHANNEL_INVALID")

    async def test_pings_are_answered_and_a_dead_peer_is_noticed(self) -> None:
        times = ChannelTimes(connect=5, reconnect=5, greet=2, ready=2, ping=0.05, dead=0.3, backoff=0.01)
        task = self.start(channel(self.service.url, times=times))
        peer = await self.service.next()
        await peer.greet()
        await peer.hear("submit")
        reading = asyncio.create_task(peer.socket.receive())
        await asyncio.sleep(0.8)
        self.assertTrue(self.service.peers.empty(), "a connection that answers pings lives")
        reading.cancel()
        with self.assertLogs("aworld_train_bridge.channel", "WARNING") as logs:
            again = await self.service.next()
        self.assertIn("silent", logs.output[0])
        await again.greet()
        await again.rollout([1])
        await asyncio.wait_for(task, 10)


if __name__ == "__main__":
    unittest.main()
