"""The inference server as AReaL's own client and its weight updates meet it."""

import asyncio
import tempfile
import unittest
from pathlib import Path

import torch
from aiohttp.test_utils import TestClient, TestServer
from areal.api import ModelRequest
from areal.api.cli_args import GenerationHyperparameters
from areal.engine.vllm_remote import VLLMBackend
from aworld_train_bridge.areal.server import application
from aworld_train_bridge.shared.model_facts import Limits
from aworld_train_bridge.sample.server import SamplingServer
from safetensors.torch import save_file
from tiny_model import END, letters, tiny_model


def request(prompt: list[int], tokens: int, **more: object) -> dict[str, object]:
    """The body that AReaL's client sends."""
    gconfig = GenerationHyperparameters(max_new_tokens=tokens, stop_token_ids=[END]).new(**more)
    return VLLMBackend().build_generation_request(ModelRequest(input_ids=prompt, gconfig=gconfig), False, 0).payload


class Serving(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self) -> None:
        self.model = tiny_model()
        self.server = SamplingServer(self.model, letters, [END], Limits(96, 96, 96), seed=1)
        self.client = TestClient(TestServer(application(self.server, self.model.config.vocab_size)))
        await self.client.start_server()
        self.addAsyncCleanup(self.server.close)
        self.addAsyncCleanup(self.client.close)

    async def complete(self, body: dict[str, object]) -> tuple[list[int], list[float], str]:
        response = await self.client.post("/v1/completions", json=body)
        self.assertEqual(response.status, 200, await response.text())
        read = VLLMBackend().parse_generation_response(await response.json())
        return read.output_tokens, read.output_logprobs, read.stop_reason

    async def test_logprobs_are_those_of_the_model(self) -> None:
        answers = await asyncio.gather(*[self.complete(request([3, row], 20, temperature=0.8)) for row in range(8)])
        for row, (ids, logprobs, reason) in enumerate(answers):
            self.assertEqual(reason, "stop" if ids[-1] == END else "length")
            with torch.inference_mode():
                logits = self.model(torch.tensor([[3, row, *ids]])).logits[0, 1:-1] / 0.8
            expected = logits.log_softmax(-1).gather(1, torch.tensor(ids).unsqueeze(1)).squeeze(1)
            torch.testing.assert_close(torch.tensor(logprobs), expected, atol=1e-5, rtol=0)

    async def test_a_pause_aborts_what_runs_and_holds_what_comes_until_the_new_weights_are_there(self) -> None:
        running = asyncio.create_task(self.complete(request([1], 90, ignore_eos=True)))
        await asyncio.sleep(0.05)
        await self.client.post("/areal_pause_generation", json={})
        ids, logprobs, reason = await running
        self.assertEqual((reason, len(ids)), ("abort", len(logprobs)))
        waiting = asyncio.create_task(self.complete(request([1, 2], 5)))
        other = tiny_model(seed=9)
        with tempfile.TemporaryDirectory() as folder:
            save_file({name: tensor.contiguous() for name, tensor in other.named_parameters()}, Path(folder) / "model.safetensors")
            updated = await self.client.post("/areal_update_weights", json={"model_path": folder})
        self.assertEqual(updated.status, 200)
        self.assertFalse(waiting.done())
        await self.client.post("/areal_continue_generation", json={})
        ids, logprobs, _ = await waiting
        with torch.inference_mode():
            first = other(torch.tensor([[1, 2]])).logits[0, -1].log_softmax(-1)[ids[0]]
        self.assertAlmostEqual(logprobs[0], float(first), places=5)

    async def test_a_page_in_a_browser_gets_nothing(self) -> None:
        page = {"Origin": "https://page.example", "Content-Type": "text/plain"}
        for path in ("/v1/completions", "/areal_update_weights", "/areal_pause_generation", "/areal_continue_generation"):
            refused = await self.client.post(path, data='{"prompt": [1], "model_path": "/"}', headers=page)
            self.assertEqual((path, refused.status), (path, 403))
        self.assertEqual((await self.client.get("/health", headers=page)).status, 403)
        ids, _, _ = await self.complete(request([1], 3))
        self.assertGreater(len(ids), 0)

    async def test_what_it_cannot_do_is_answered_with_a_reason(self) -> None:
        for body, reason in (
            (request([1], 5, top_p=0.5), "top_p"),
            (request([1], 5, top_k=3), "top_k"),
            (request([1], 5, use_beam_search=True), "beam"),
            (request([], 5), "no tokens"),
            (request([10_000], 5), "vocabulary"),
            (request([1] * 96, 5), "no room"),
            ({"max_tokens": 5}, "prompt"),
        ):
            response = await self.client.post("/v1/completions", json=body)
            self.assertEqual((response.status, reason in await response.text()), (400, True), (reason, await response.text()))
        self.assertEqual((await self.client.post("/areal_update_weights", json={"model_path": "/no such"})).status, 400)
        self.assertEqual((await self.client.get("/health")).status, 200)


if __name__ == "__main__":
    unittest.main()
