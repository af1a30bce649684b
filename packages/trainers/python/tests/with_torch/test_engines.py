"""Engines under rollouts that block, against a service in memory: who samples, in which thread, and what is reported."""

import asyncio
import json
import threading
import unittest
from concurrent.futures import Future

import torch
from aiohttp import web
from aworld_train_bridge.shared.engines import HttpEngine, ModelEngine
from aworld_train_bridge.errors import ChannelError
from aworld_train_bridge.frames import int32
from aworld_train_bridge.open_rollout import ModelCall
from tiny_model import END, letters, tiny_model

SAMPLING = {"temperature": 0.7, "topP": 1.0, "topK": -1, "repetitionPenalty": 1.0}


def call(prompt: list[int], max_tokens: int = 12, stop: list[str] | None = None, id: int = 0) -> ModelCall:
    return ModelCall(id, "k", "main", 0, {"maxTokens": max_tokens, "stop": stop or []}, int32(prompt))


def in_a_thread(coroutine_of_loop) -> Future:
    """Runs a coroutine in an event loop of another thread, as the channel does."""
    done: Future = Future()

    def run() -> None:
        try:
            done.set_result(asyncio.run(coroutine_of_loop()))
        except BaseException as error:
            done.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return done


class ModelEngineTest(unittest.TestCase):
    def engine(self, model: torch.nn.Module, context: int = 96, version: int = 3) -> ModelEngine:
        return ModelEngine(lambda: model, letters, [END], context=context, version=lambda: version)

    def sample(self, model: torch.nn.Module, *calls: ModelCall, **options) -> list:
        engine = self.engine(model, **options)

        async def ask() -> list:
            return await asyncio.gather(*(engine.sample(each, SAMPLING) for each in calls), return_exceptions=True)

        done = in_a_thread(ask)
        engine.drive(done)
        return done.result()

    def test_calls_of_another_thread_are_answered_by_this_one_with_the_models_logprobs(self) -> None:
        model = tiny_model()
        threads = set()
        model.register_forward_pre_hook(lambda *_: threads.add(threading.current_thread()))
        model.train()
        prompts = [[1, 2, 3], [4, 5], [6, 8, 9, 10]]
        answers = self.sample(model, *(call(prompt) for prompt in prompts))
        self.assertEqual(threads, {threading.current_thread()})
        self.assertTrue(model.training)
        model.eval()
        for prompt, answer in zip(prompts, answers, strict=True):
            ids = list(answer.ids)
            self.assertTrue(0 < len(ids) <= 12)
            self.assertEqual(answer.finish, "stop" if ids[-1] == END else "length")
            self.assertEqual((answer.min_version, answer.max_version), (3, 3))
            with torch.no_grad():
                logits = model(input_ids=torch.tensor([prompt + ids])).logits[0, len(prompt) - 1 : -1] / SAMPLING["temperature"]
            expected = logits.log_softmax(-1).gather(1, torch.tensor(ids).unsqueeze(1)).squeeze(1)
            self.assertLess(float((expected - torch.tensor(list(answer.logprobs))).abs().max()), 1e-5)

    def test_a_call_in_answer_to_another_is_sampled_in_the_same_drive(self) -> None:
        engine = self.engine(tiny_model())

        async def two_turns() -> list[int]:
            first = await engine.sample(call([1, 2]), SAMPLING)
            second = await engine.sample(call([1, 2, *first.ids, 3]), SAMPLING)
            return [len(first.ids), len(second.ids)]

        done = in_a_thread(two_turns)
        engine.drive(done)
        self.assertTrue(all(done.result()))

    def test_other_draws_come_of_every_drive(self) -> None:
        model, engine, drawn = tiny_model(), None, []
        engine = self.engine(model)
        for _ in range(2):
            done = in_a_thread(lambda: engine.sample(call([1, 2, 3], 40), SAMPLING))
            engine.drive(done)
            drawn.append(list(done.result().ids))
        self.assertNotEqual(*drawn)

    def test_what_cannot_be_sampled_is_refused_and_the_rest_goes_on(self) -> None:
        long, top, good = self.sample(tiny_model(), call([1] * 96), call([1, 2]), call([1, 2, 3]), context=96)
        self.assertEqual(long.code, "POLICY_CONTEXT_OVERFLOW")
        self.assertTrue(len(good.ids) and len(top.ids))
        engine = self.engine(tiny_model())
        with self.assertRaisesRegex(ChannelError, "top_p is 0.5"):
            asyncio.run(engine.sample(call([1, 2]), {**SAMPLING, "topP": 0.5}))

    def test_a_model_that_fails_fails_the_calls_of_its_batch(self) -> None:
        model = tiny_model()
        failing = model.register_forward_pre_hook(lambda *_: (_ for _ in ()).throw(RuntimeError("out of memory")))
        [answer] = self.sample(model, call([1, 2]))
        self.assertEqual(answer.code, "POLICY_FAILED")
        self.assertIn("out of memory", answer.message)
        failing.remove()
        self.assertTrue(self.sample(model, call([1, 2]))[0].ids)


class CompletionServer:
    """Answers `/v1/completions` with the shape of vLLM 0.32, or with what a test says."""

    def __init__(self) -> None:
        self.requests: list[tuple[dict, str]] = []
        self.answer = lambda body: (200, json.dumps(self.completion([5, END], [-0.5, -0.25], "stop")))

    @staticmethod
    def completion(ids: list[int], logprobs: list, finish: str) -> dict:
        return {"choices": [{"index": 0, "text": "", "finish_reason": finish, "token_ids": ids, "logprobs": {"token_logprobs": logprobs, "tokens": [f"token_id:{id}" for id in ids]}}]}

    async def ask(self, *calls: ModelCall, token: str = "") -> list:
        async def completions(request: web.Request) -> web.Response:
            body = await request.json()
            self.requests.append((body, request.headers.get("Authorization", "")))
            status, text = self.answer(body)
            return web.Response(status=status, text=text, content_type="application/json")

        app = web.Application()
        app.add_routes([web.post("/v1/completions", completions)])
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        engine = HttpEngine(f"http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}/", "m", [END], version=lambda: 4, token=token)
        try:
            return await asyncio.gather(*(engine.sample(each, SAMPLING) for each in calls), return_exceptions=True)
        finally:
            await engine.close()
            await runner.cleanup()


class HttpEngineTest(unittest.IsolatedAsyncioTestCase):
    async def test_asks_by_ids_and_takes_ids_with_their_logprobs(self) -> None:
        server = CompletionServer()
        [sampled] = await server.ask(call([1, 2], 9, ["\n"]), token="secret")
        self.assertEqual((list(sampled.ids), list(sampled.logprobs), sampled.finish, sampled.max_version), ([5, END], [-0.5, -0.25], "stop", 4))
        [(body, authorization)] = server.requests
        self.assertEqual(authorization, "Bearer secret")
        self.assertEqual(
            body,
            {
                "temperature": 0.7, "top_p": 1.0, "top_k": -1, "repetition_penalty": 1.0, "model": "m", "prompt": [1, 2], "max_tokens": 9,
                "stop": ["\n"], "stop_token_ids": [END], "logprobs": 0, "return_token_ids": True,
            },
        )  # fmt: skip

    async def test_what_a_server_may_answer_instead_is_a_typed_error(self) -> None:
        cases = [
            ((429, "slow down"), "POLICY_UNAVAILABLE", True),
            ((503, "at capacity"), "POLICY_UNAVAILABLE", True),
            ((401, "who are you"), "POLICY_FAILED", False),
            ((415, "not that"), "POLICY_FAILED", False),
            ((200, "<html>"), "POLICY_RESPONSE_INVALID", False),
            ((200, '{"choices": []}'), "POLICY_RESPONSE_INVALID", False),
            ((200, json.dumps(CompletionServer.completion([5, 6], [-0.5], "stop"))), "POLICY_RESPONSE_INVALID", False),
            ((200, json.dumps(CompletionServer.completion([5], [None], "stop"))), "POLICY_RESPONSE_INVALID", False),
        ]
        for answer, code, retryable in cases:
            with self.subTest(answer=answer):
                server = CompletionServer()
                server.answer = lambda _, answer=answer: answer
                [error] = await server.ask(call([1, 2]))
                self.assertIsInstance(error, ChannelError)
                self.assertEqual((error.code, error.retryable), (code, retryable))

    async def test_a_server_that_is_gone_is_unavailable(self) -> None:
        engine = HttpEngine("http://127.0.0.1:9", "m", [END], version=lambda: 0)
        with self.assertRaises(ChannelError) as raised:
            await engine.sample(call([1, 2]), SAMPLING)
        self.assertEqual(raised.exception.code, "POLICY_UNAVAILABLE")
        await engine.close()


if __name__ == "__main__":
    unittest.main()
