import asyncio
import time
import unittest

from aworld_train_bridge.errors import ChannelError
from aworld_train_bridge.frames import int32
from memory_service import MemoryService, Policy, generate, result, submission

KEY = "r/i/train/1/u/0"


class ChannelTest(unittest.IsolatedAsyncioTestCase):
    def setUp(self) -> None:
        self.service = MemoryService()
        self.policy = Policy()

    def start(self, channel, **more):
        self.addAsyncCleanup(channel.close)
        task = asyncio.create_task(channel.rollout(submission(**more), self.policy.serve, self.policy.lost))
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
        return task

    async def until(self, condition) -> None:
        async with asyncio.timeout(60):
            while not condition():
                await asyncio.sleep(0.001)

    async def failure(self, task) -> ChannelError:
        with self.assertRaises(ChannelError) as raised:
            await asyncio.wait_for(task, 60)
        return raised.exception

    async def test_a_rollout_is_submitted_served_and_returned(self) -> None:
        channel = self.service.channel()
        task = self.start(channel)
        peer = await self.service.next()
        hello = await peer.greet()
        self.assertEqual((hello.header["protocol"], hello.arrays["renderedIds"].tolist()), (2, [1, 2, 3]))
        submit = await peer.hear("submit")
        self.assertEqual(submit.header["key"], KEY)
        peer.say({"type": "queued", "key": KEY})
        peer.say({"type": "started", "key": KEY})
        peer.say(generate(7), {"promptIds": int32([5, 6])})
        generated = await peer.hear("generated")
        self.assertEqual({"type": "generated", "id": 7, "finish": "stop", "minVersion": 3, "maxVersion": 4}, dict(generated.header))
        self.assertEqual((generated.arrays["ids"].tolist(), generated.arrays["logprobs"].tolist()), ([6, 7], [-0.5, -0.5]))
        peer.say(result(), {"ids.0": int32([1])})
        self.assertEqual((await task).arrays["ids.0"].tolist(), [1])
        channel.accept(KEY)
        self.assertEqual((await peer.hear("accepted")).header["key"], KEY)

    async def test_calls_of_one_rollout_run_at_once(self) -> None:
        self.policy.gate.clear()
        self.start(self.service.channel())
        peer = await self.service.next()
        await peer.greet()
        await peer.hear("submit")
        for id in range(3):
            peer.say(generate(id), {"promptIds": int32([id])})
        await self.until(lambda: len(self.policy.calls) == 3)
        self.policy.gate.set()
        self.assertEqual({(await peer.hear("generated")).header["id"] for _ in range(3)}, {0, 1, 2})

    async def test_files_are_sent_when_the_service_lacks_them(self) -> None:
        channel = self.service.channel(files={"tokenizer.json": b"{}", "vocab.json": b"[1]"})
        self.start(channel)
        peer = await self.service.next()
        await peer.hear("hello")
        peer.say({"type": "welcome", "needFiles": True, "settings": {}})
        files = await peer.hear("files")
        self.assertEqual(files.header["files"], [{"name": "tokenizer.json"}, {"name": "vocab.json"}])
        self.assertEqual(files.arrays["vocab.json"].tobytes(), b"[1]")
        peer.say({"type": "ready"})
        await peer.hear("submit")

    async def test_a_generate_for_a_closed_or_unknown_key_never_reaches_the_policy(self) -> None:
        task = self.start(self.service.channel())
        peer = await self.service.next()
        await peer.greet()
        await peer.hear("submit")
        peer.say(result())
        peer.say(generate(1), {"promptIds": int32([5])})
        peer.say(generate(2, key="r/i/train/1/other/0"), {"promptIds": int32([5])})
        await task
        for id in (1, 2):
            refused = await peer.hear("generate-failed")
            self.assertEqual((refused.header["id"], refused.header["error"]["code"]), (id, "ROLLOUT_CLOSED"))
        self.assertEqual(self.policy.calls, [])

    async def test_a_rollout_ends_only_when_its_calls_have_ended(self) -> None:
        self.policy.gate.clear()
        task = self.start(self.service.channel(drain=60))
        peer = await self.service.next()
        await peer.greet()
        await peer.hear("submit")
        peer.say(generate(1), {"promptIds": int32([5])})
        peer.say(result())
        await asyncio.sleep(0.05)
        self.assertFalse(task.done())
        self.policy.gate.set()
        await asyncio.wait_for(task, 60)
        self.assertEqual(self.policy.lost_calls, [(1, 1, "rollout-closed")])

    async def test_a_policy_that_hangs_does_not_hold_a_finished_rollout_for_ever(self) -> None:
        self.policy.gate.clear()
        task = self.start(self.service.channel(drain=0.05))
        peer = await self.service.next()
        await peer.greet()
        peer.say(generate(1), {"promptIds": int32([5])})
        peer.say(result())
        await asyncio.wait_for(task, 60)

    async def test_an_aborted_call_is_counted_as_lost(self) -> None:
        self.policy.gate.clear()
        self.start(self.service.channel())
        peer = await self.service.next()
        await peer.greet()
        await peer.hear("submit")
        peer.say(generate(1), {"promptIds": int32([5, 6])})
        peer.say({"type": "abort", "id": 1})
        await self.until(lambda: self.policy.calls)
        self.policy.gate.set()
        await self.until(lambda: self.policy.lost_calls)
        self.assertEqual(self.policy.lost_calls, [(1, 2, "aborted")])

    async def test_an_answer_that_crossed_with_its_abort_is_counted_as_lost_once(self) -> None:
        self.start(self.service.channel())
        peer = await self.service.next()
        await peer.greet()
        await peer.hear("submit")
        peer.say(generate(1), {"promptIds": int32([5, 6])})
        await peer.hear("generated")
        self.assertEqual(self.policy.lost_calls, [])
        for _ in range(2):
            peer.say({"type": "abort", "id": 1})
        await self.until(lambda: self.policy.lost_calls)
        await asyncio.sleep(0.01)
        self.assertEqual(self.policy.lost_calls, [(1, 2, "aborted")])

    async def test_an_error_of_the_policy_is_the_answer(self) -> None:
        async def fails(call):
            raise ChannelError("POLICY_UNAVAILABLE", "gone", True) if call.id == 1 else ValueError("odd")

        channel = self.service.channel()
        self.policy.serve = fails
        self.start(channel)
        peer = await self.service.next()
        await peer.greet()
        await peer.hear("submit")
        peer.say(generate(1), {"promptIds": int32([5])})
        self.assertEqual((await peer.hear("generate-failed")).header["error"], {"code": "POLICY_UNAVAILABLE", "message": "gone", "retryable": True})
        peer.say(generate(2), {"promptIds": int32([5])})
        with self.assertLogs("aworld_train_bridge.connection", "ERROR"):
            failed = await peer.hear("generate-failed")
        self.assertEqual(failed.header["error"], {"code": "POLICY_FAILED", "message": "ValueError: odd", "retryable": False})

    async def test_a_lost_connection_is_made_again_and_the_same_keys_are_submitted(self) -> None:
        self.policy.gate.clear()
        task = self.start(self.service.channel())
        peer = await self.service.next()
        await peer.greet()
        await peer.hear("submit")
        peer.say(generate(1), {"promptIds": int32([5])})
        await self.until(lambda: self.policy.calls)
        self.service.refusals = [ChannelError("CHANNEL_UNREACHABLE", "restarting", True)] * 2
        with self.assertLogs("aworld_train_bridge.channel", "WARNING"):
            peer.drop()
            again = await self.service.next()
        hello = await again.greet()
        self.assertEqual(hello.header["worker"], "w")
        self.assertEqual((await again.hear("submit")).header["key"], KEY)
        self.policy.gate.set()
        again.say(generate(9), {"promptIds": int32([5])})
        self.assertEqual((await again.hear("generated")).header["id"], 9)
        self.assertEqual(self.policy.lost_calls, [(1, 1, "connection-lost")])
        again.say(result())
        await task

    async def test_a_connection_that_stays_lost_fails_its_rollouts_and_a_later_one_tries_again(self) -> None:
        channel = self.service.channel(reconnect=0.1)
        task = self.start(channel)
        peer = await self.service.next()
        await peer.greet()
        await peer.hear("submit")
        self.service.refusals = [ChannelError("CHANNEL_UNREACHABLE", "No service.", True)] * 1000
        with self.assertLogs("aworld_train_bridge.channel", "WARNING"):
            peer.drop()
            error = await self.failure(task)
        self.assertEqual((error.code, error.retryable), ("CHANNEL_UNREACHABLE", True))
        self.service.refusals.clear()
        second = self.start(channel, key="r/i/train/1/u/1")
        again = await self.service.next()
        await again.greet()
        self.assertEqual({(await again.hear(kind)).header["key"] for kind in ("cancel", "submit")}, {KEY, "r/i/train/1/u/1"})
        again.say(result(key="r/i/train/1/u/1"))
        await second

    async def test_a_wrong_token_or_protocol_ends_every_rollout_at_once(self) -> None:
        channel = self.service.channel()
        self.service.refusals = [ChannelError("CHANNEL_UNAUTHORIZED", "token")]
        self.assertEqual((await self.failure(self.start(channel))).code, "CHANNEL_UNAUTHORIZED")
        self.assertEqual((await self.failure(self.start(channel))).code, "CHANNEL_UNAUTHORIZED")
        self.assertEqual(self.service.attempts, 1)

        other = self.service.channel()
        task = self.start(other)
        peer = await self.service.next()
        await peer.hear("hello")
        peer.say({"type": "rejected", "error": {"code": "CHANNEL_PROTOCOL", "message": "2 is spoken", "retryable": False}})
        peer.drop(4000)
        self.assertEqual((await self.failure(task)).code, "CHANNEL_PROTOCOL")

    async def test_a_superseded_worker_fails_in_mid_run(self) -> None:
        task = self.start(self.service.channel())
        peer = await self.service.next()
        await peer.greet()
        await peer.hear("submit")
        peer.say({"type": "rejected", "error": {"code": "CHANNEL_SUPERSEDED", "message": "newer", "retryable": False}})
        peer.drop(4000)
        self.assertEqual((await self.failure(task)).code, "CHANNEL_SUPERSEDED")

    async def test_what_cannot_be_read_is_a_typed_error(self) -> None:
        for garbage in ("{", b"\x00\x00", b"\xff\xff\xff\x7f{}", '{"type":"generate"}', '{"type":"error","message":"?"}'):
            with self.subTest(garbage=garbage):
                task = self.start(self.service.channel())
                peer = await self.service.next()
                await peer.greet()
                await peer.hear("submit")
                peer.to_client.put_nowait(garbage)
                self.assertIn((await self.failure(task)).code, ("CHANNEL_INVALID", "CHANNEL_PROTOCOL"))

    async def test_a_service_that_says_nothing_is_given_up(self) -> None:
        task = self.start(self.service.channel(greet=0.02, connect=0.1))
        self.assertEqual((await self.failure(task)).code, "CHANNEL_TIMEOUT")

    async def test_a_silent_connection_is_given_up(self) -> None:
        self.start(self.service.channel(ping=0.02, dead=0.05))
        peer = await self.service.next()
        await peer.greet()
        peer.answers_pings = False
        with self.assertLogs("aworld_train_bridge.channel", "WARNING") as logs:
            await self.service.next()
        self.assertIn("silent", logs.output[0])

    async def test_the_deadline_begins_when_the_rollout_starts(self) -> None:
        task = self.start(self.service.channel(margin=0.05), deadlineMs=50)
        peer = await self.service.next()
        await peer.greet()
        peer.say({"type": "queued", "key": KEY})
        await peer.hear("submit")
        await asyncio.sleep(0.3)
        self.assertFalse(task.done())
        began = time.monotonic()
        peer.say({"type": "started", "key": KEY})
        self.assertEqual((await self.failure(task)).code, "ROLLOUT_DEADLINE")
        self.assertGreater(time.monotonic() - began, 0.08)
        self.assertEqual((await peer.hear("cancel")).header["key"], KEY)

    async def test_a_rollout_queued_again_after_a_restart_has_no_deadline(self) -> None:
        task = self.start(self.service.channel(margin=0.02), deadlineMs=50)
        peer = await self.service.next()
        await peer.greet()
        peer.say({"type": "started", "key": KEY})
        peer.say({"type": "queued", "key": KEY})
        await asyncio.sleep(0.2)
        self.assertFalse(task.done())

    async def test_the_service_decides_the_deadline_where_a_rollout_has_none(self) -> None:
        task = self.start(self.service.channel(margin=0.02))
        peer = await self.service.next()
        await peer.greet(rolloutTimeoutMs=20)
        peer.say({"type": "started", "key": KEY})
        self.assertEqual((await self.failure(task)).code, "ROLLOUT_DEADLINE")

    async def test_cancelling_the_caller_cancels_the_rollout(self) -> None:
        task = self.start(self.service.channel())
        peer = await self.service.next()
        await peer.greet()
        await peer.hear("submit")
        task.cancel()
        self.assertEqual((await peer.hear("cancel")).header["key"], KEY)
        with self.assertRaises(asyncio.CancelledError):
            await task
        peer.say(generate(1), {"promptIds": int32([5])})
        self.assertEqual((await peer.hear("generate-failed")).header["error"]["code"], "ROLLOUT_CLOSED")

    async def test_one_key_runs_once(self) -> None:
        channel = self.service.channel()
        self.start(channel)
        await asyncio.sleep(0)
        self.assertEqual((await self.failure(self.start(channel))).code, "ROLLOUT_CONFLICT")

    async def test_a_greeting_that_cannot_be_made_is_the_error_of_every_rollout(self) -> None:
        channel = self.service.channel()

        def broken():
            raise ChannelError("TEMPLATE_UNSUPPORTED", "no template")

        channel.greeting = broken
        self.assertEqual((await self.failure(self.start(channel))).code, "TEMPLATE_UNSUPPORTED")

    async def test_hundreds_of_rollouts_are_submitted_at_once(self) -> None:
        channel = self.service.channel()
        self.addAsyncCleanup(channel.close)
        keys = [f"r/i/train/1/u/{n}" for n in range(500)]
        tasks = [asyncio.create_task(channel.rollout(submission(key=key), self.policy.serve, self.policy.lost)) for key in keys]
        peer = await self.service.next()
        await peer.greet()
        heard = [(await peer.hear("submit")).header["key"] for _ in keys]
        self.assertEqual(heard, keys)
        for key in keys:
            peer.say(result(key=key))
        self.assertEqual([frame.header["key"] for frame in await asyncio.gather(*tasks)], keys)


if __name__ == "__main__":
    unittest.main()
