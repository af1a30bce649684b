"""Rollouts of a trainer that blocks, against a service in memory that lives in the same event loop."""

import asyncio
import tempfile
import threading
import unittest
from concurrent.futures import FIRST_EXCEPTION, Future, wait
from pathlib import Path
from typing import Any, Awaitable, Callable

from aworld_train_bridge.connection import Greeting
from aworld_train_bridge.shared.ledger import read_ledger
from aworld_train_bridge.shared.rollouts import Rollouts, Submission
from aworld_train_bridge.shared.settings import BridgeSettings
from aworld_train_bridge.errors import ChannelError
from aworld_train_bridge.frames import float32, int32, uint8
from aworld_train_bridge.open_rollout import ModelCall, Sampled
from memory_service import HELLO, MemoryConnection, MemoryService, generate, result

SAMPLING = {"temperature": 0.5, "topP": 1.0, "topK": -1, "repetitionPenalty": 1.0}
ROW = {"agent": "main", "trajectory": "main", "promptLength": 2, "length": 4, "minVersion": 3, "maxVersion": 3, "turns": [0], "reward": 0.25}


class CountingEngine:
    """Answers at once, in the channel's thread, and notes the thread that it was given to drive."""

    def __init__(self) -> None:
        self.callers: list[threading.Thread] = []
        self.samplings: list[Any] = []
        self.closed = False
        self.service: Future | None = None

    async def sample(self, call: ModelCall, sampling: Any) -> Sampled:
        self.samplings.append(sampling)
        return Sampled(int32([7, 8]), float32([-0.5, -0.5]), "stop", 3, 3)

    def drive(self, done: Future) -> None:
        self.callers.append(threading.current_thread())
        if self.service is None:
            wait([done])
            return
        wait([done, self.service], return_when=FIRST_EXCEPTION)
        if self.service.done():
            self.service.result()  # a service that failed would be waited for without end

    async def close(self) -> None:
        self.closed = True


def submission(sample: int = 0, partition: str = "train") -> Submission:
    return Submission(partition, 4, "task 1", sample, {"prompt": []}, SAMPLING)


def key(sample: int = 0, partition: str = "train") -> str:
    return f"r/i/{partition}/4/task%201/{sample}"


def done(sample: int = 0, **more: Any) -> dict[str, Any]:
    return result(key(sample), rows=[{**ROW, **more}])


ARRAYS = {"ids.0": int32([1, 2, 7, 8]), "mask.0": uint8([0, 0, 1, 1]), "logprobs.0": float32([0, 0, -0.5, -0.5])}


class RolloutsTest(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.service, self.engine = MemoryService(), CountingEngine()
        settings = BridgeSettings("ws://memory", "t", "r", "i", Path(self.folder.name), None)
        hello = {**HELLO, "model": {"vocabularySize": 10}}
        self.rollouts = Rollouts(settings, lambda: Greeting(hello, {"renderedIds": int32([1])}, dict), self.engine, self.service.connect)
        self.addCleanup(self.rollouts.close)

    def play(self, script: Callable[[MemoryConnection], Awaitable[None]], **settings: Any) -> Future:
        """The service's part, in the event loop of the rollouts."""

        async def serve() -> None:
            connection = await self.service.next()
            await connection.greet(**settings)
            await script(connection)

        self.engine.service = asyncio.run_coroutine_threadsafe(serve(), self.rollouts.loop)
        return self.engine.service

    def test_outcomes_come_in_the_order_of_the_submissions_and_tokens_are_counted(self) -> None:
        async def script(connection: MemoryConnection) -> None:
            for sample in (0, 1):
                submitted = await connection.hear("submit")
                self.assertEqual((submitted.header["key"], submitted.header["sampling"]), (key(sample), SAMPLING))
            connection.say(generate(5, key(1)), {"promptIds": int32([1, 2])})
            self.assertEqual((await connection.hear("weights")).header["version"], 3)
            generated = await connection.hear("generated")
            self.assertEqual((list(generated.arrays["ids"]), generated.header["minVersion"]), ([7, 8], 3))
            for sample in (1, 0):
                connection.say(done(sample, reward=sample / 4), ARRAYS)
                self.assertEqual((await connection.hear("accepted")).header["key"], key(sample))

        played = self.play(script)
        first, second = self.rollouts.run([submission(0), submission(1)])
        played.result(5)
        self.assertEqual([(each.key, each.rows[0].reward, each.error) for each in (first, second)], [(key(0), 0.0, None), (key(1), 0.25, None)])
        self.assertEqual((second.rows[0].prompt_ids, second.rows[0].response_ids, second.rows[0].response_mask), ([1, 2], [7, 8], [1, 1]))
        self.assertEqual(self.engine.callers, [threading.current_thread()])
        self.assertEqual(self.engine.samplings, [SAMPLING])
        self.assertEqual(list(read_ledger(Path(self.folder.name, "ledger", "i"), "sampled")), [{"key": key(1), "id": "5", "version": 3, "tokens": 2}])

    def test_a_failed_or_refused_rollout_is_an_outcome_and_the_others_stand(self) -> None:
        async def script(connection: MemoryConnection) -> None:
            for _ in range(3):
                await connection.hear("submit")
            connection.say(result(key(0), status="failed", reward=None, error={"code": "AGENT_FAILED", "message": "boom", "retryable": False}))
            connection.say(done(1, reward=None), ARRAYS)
            connection.say(done(2), ARRAYS)
            heard = [(await connection.hear(kind)).header["key"] for kind in ("accepted", "refused", "accepted")]
            self.assertEqual(heard, [key(0), key(1), key(2)])

        played = self.play(script)
        outcomes = self.rollouts.run([submission(sample) for sample in range(3)])
        played.result(5)
        self.assertEqual([each.error.code if each.error else None for each in outcomes], ["AGENT_FAILED", "RESULT_INVALID", None])
        self.assertEqual([len(each.rows) for each in outcomes], [0, 0, 1])

    def test_a_service_that_refuses_the_trainer_ends_the_run(self) -> None:
        self.service.refusals.append(ChannelError("CHANNEL_UNAUTHORIZED", "no"))
        with self.assertRaisesRegex(ChannelError, "CHANNEL_UNAUTHORIZED"):
            self.rollouts.run([submission()])

    def test_a_service_without_rewards_is_refused(self) -> None:
        async def script(_: MemoryConnection) -> None: ...

        self.play(script, reward="native")
        with self.assertRaisesRegex(ChannelError, "CONFIG_INVALID.*reward"):
            self.rollouts.run([submission()])

    def test_an_interrupted_trainer_cancels_its_rollouts(self) -> None:
        def interrupted(_: Future) -> None:
            submitted.result(5)
            raise KeyboardInterrupt

        submitted: Future = Future()

        async def script(connection: MemoryConnection) -> None:
            submitted.set_result(await connection.hear("submit"))
            self.assertEqual((await connection.hear("cancel")).header["key"], key())

        played = self.play(script)
        self.engine.drive = interrupted
        with self.assertRaises(KeyboardInterrupt):
            self.rollouts.run([submission()])
        played.result(5)

    def test_a_rollout_is_awaited_in_another_event_loop_and_cancelled_from_there(self) -> None:
        async def script(connection: MemoryConnection) -> None:
            await connection.hear("submit")
            connection.say(done(), ARRAYS)
            await connection.hear("accepted")
            await connection.hear("submit")
            heard.set_result(None)
            self.assertEqual((await connection.hear("cancel")).header["key"], key(1))

        heard: Future = Future()
        played = self.play(script)

        async def trainer() -> None:
            self.assertEqual((await self.rollouts.rollout(submission(0))).rows[0].reward, 0.25)
            waiting = asyncio.create_task(self.rollouts.rollout(submission(1)))
            await asyncio.wrap_future(heard)
            waiting.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await waiting

        asyncio.run(trainer())
        played.result(5)
        self.assertEqual(self.engine.callers, [])

    def test_closing_ends_channel_engine_and_thread(self) -> None:
        self.rollouts.close()
        self.rollouts.close()
        self.assertTrue(self.engine.closed)
        self.assertFalse(any(thread.name == "aworld-train-rollouts" for thread in threading.enumerate()))


if __name__ == "__main__":
    unittest.main()
