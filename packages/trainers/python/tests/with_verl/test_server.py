import asyncio
import time
import unittest

import torch
from aworld_train_bridge.shared.model_facts import Limits
from aworld_train_bridge.sample.server import SamplingServer
from aworld_train_bridge.sample.weights import load_weights
from tiny_model import END, letters, tiny_model

LIMITS = Limits(prompt=20, response=40, context=96)
ENDLESS = {"temperature": 1.0, "ignore_eos": True, "max_tokens": 80}


def weights(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {name: parameter.detach().clone() for name, parameter in model.named_parameters()}


class Serving(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self) -> None:
        self.lines: list[dict[str, object]] = []
        self.busy: list[dict[str, float]] = []
        self.model = tiny_model()
        self.server = SamplingServer(self.model, letters, [END], LIMITS, seed=1, record=self.record)
        self.server.version = 0
        self.addAsyncCleanup(self.server.close)

    def record(self, name: str, line: dict[str, object]) -> None:
        {"engine": self.lines, "busy": self.busy}[name].append(line)

    async def test_answers_many_at_once_and_counts_what_it_drew(self) -> None:
        answers = await asyncio.gather(*[self.server.generate([row % 41, 2], {"temperature": 1.0}, f"r{row}") for row in range(50)])
        for answer in answers:
            self.assertEqual(len(answer["token_ids"]), len(answer["log_probs"]))
            self.assertEqual((answer["stop_reason"], answer["extra_fields"]), ("completed", {"global_steps": 0}))
            self.assertLessEqual(len(answer["token_ids"]), 40)
        counted = {line["requestId"]: line["tokens"] for line in self.lines}
        self.assertEqual(counted, {f"r{row}": len(answer["token_ids"]) for row, answer in enumerate(answers)})

    async def test_tells_when_it_had_something_to_sample(self) -> None:
        before = time.time() * 1000
        await asyncio.gather(*[self.server.generate([1], {"max_tokens": 9, "ignore_eos": True}, f"r{row}") for row in range(3)])
        await asyncio.sleep(0.05)
        await self.server.generate([1], {"max_tokens": 2, "ignore_eos": True}, "later")
        await asyncio.sleep(0.01)
        first, second = self.busy
        self.assertEqual((first["steps"] >= 9, second["steps"]), (True, 2))
        self.assertTrue(before - 1 <= first["from"] < first["to"] < second["from"] - 40 < second["to"] <= time.time() * 1000 + 1)

    async def test_a_weight_update_aborts_what_runs_and_later_calls_use_the_new_weights(self) -> None:
        calls = [asyncio.create_task(self.server.generate([1], ENDLESS, f"r{row}")) for row in range(4)]
        await asyncio.sleep(0.03)
        other = tiny_model(seed=9)
        await self.server.load_weights(weights(other), 5)
        for answer in await asyncio.gather(*calls):
            self.assertEqual((answer["stop_reason"], answer["extra_fields"]["global_steps"]), ("aborted", 0))
            self.assertTrue(0 < len(answer["token_ids"]) < 80)
        after = await self.server.generate([1, 2], {"temperature": 1.0}, "after")
        self.assertEqual(after["extra_fields"]["global_steps"], 5)
        with torch.inference_mode():
            logprobs = torch.log_softmax(other(torch.tensor([[1, 2, *after["token_ids"]]])).logits[0], dim=-1)
        for place, (id, logprob) in enumerate(zip(after["token_ids"], after["log_probs"], strict=True)):
            self.assertAlmostEqual(float(logprobs[1 + place, id]), logprob, delta=1e-5)

    async def test_a_pause_aborts_and_holds_until_it_is_over(self) -> None:
        running = asyncio.create_task(self.server.generate([1], ENDLESS, "running"))
        await asyncio.sleep(0.03)
        self.assertEqual(await self.server.abort_all(), 1)
        self.assertEqual((await running)["stop_reason"], "aborted")
        held = asyncio.create_task(self.server.generate([1], {}, "held"))
        await self.server.sleep()
        await self.server.load_weights(weights(self.model), 1)
        await asyncio.sleep(0.05)
        self.assertFalse(held.done())
        self.server.resume()
        answer = await asyncio.wait_for(held, 10)
        self.assertEqual((answer["stop_reason"], answer["extra_fields"]["global_steps"]), ("completed", 1))

    async def test_a_pause_that_rejects_answers_at_once_without_tokens(self) -> None:
        await self.server.abort_all(reject=True)
        answer = await asyncio.wait_for(self.server.generate([1], {}, "late"), 1)
        self.assertEqual((answer["token_ids"], answer["log_probs"], answer["stop_reason"]), ([], [], "aborted"))
        self.assertEqual(self.lines, [])

    async def test_sleep_ends_with_the_next_weights(self) -> None:
        await self.server.sleep()
        held = asyncio.create_task(self.server.generate([1], {}, "held"))
        await asyncio.sleep(0.02)
        self.assertFalse(held.done())
        await self.server.load_weights(weights(self.model), 2)
        self.assertEqual((await asyncio.wait_for(held, 10))["extra_fields"]["global_steps"], 2)

    async def test_prompts_that_it_cannot_sample_for_are_refused_by_name(self) -> None:
        for prompt, named in (([], "no tokens"), ([1, 41], "id 41"), ([-1], "id -1"), ([1] * 96, "context of 96")):
            with self.assertRaisesRegex(ValueError, named):
                await self.server.generate(prompt, {}, "bad")

    async def test_a_failure_of_the_model_reaches_every_caller_and_sampling_goes_on(self) -> None:
        forward = self.model.forward
        self.model.forward = lambda **_: (_ for _ in ()).throw(RuntimeError("broken"))
        calls = [self.server.generate([1], {}, f"r{row}") for row in range(3)]
        for error in await asyncio.gather(*calls, return_exceptions=True):
            self.assertIn("broken", str(error))
        self.model.forward = forward
        self.assertTrue((await self.server.generate([1], {}, "again"))["token_ids"])


class Weights(unittest.TestCase):
    def test_takes_every_parameter_and_tied_ones_under_either_name(self) -> None:
        model, other = tiny_model(), tiny_model(seed=3)
        sent = weights(other)
        sent["lm_head.weight"] = sent["model.embed_tokens.weight"].clone()
        self.assertEqual(load_weights(model, sent), len(list(model.named_parameters())))
        del sent["model.embed_tokens.weight"]
        self.assertEqual(load_weights(model, sent), len(list(model.named_parameters())))
        for (name, a), (_, b) in zip(model.named_parameters(), other.named_parameters(), strict=True):
            self.assertTrue(torch.equal(a, b), name)

    def test_changes_nothing_where_one_is_wrong(self) -> None:
        name = "model.layers.1.mlp.up_proj.weight"
        wrong = {
            "did not arrive": lambda sent: sent.pop(name),
            "no parameter": lambda sent: sent.update(other=torch.zeros(1)),
            "arrived as": lambda sent: sent.update({name: torch.zeros(3, 3)}),
            "not finite": lambda sent: sent[name].__setitem__((0, 0), float("nan")),
            "different values": lambda sent: sent.update({"lm_head.weight": torch.zeros(41, 32)}),
        }
        for message, spoil in wrong.items():
            model, sent = tiny_model(), weights(tiny_model(seed=3))
            before = weights(model)
            spoil(sent)
            with self.assertRaisesRegex(ValueError, message):
                load_weights(model, sent)
            for key, tensor in weights(model).items():
                self.assertTrue(torch.equal(tensor, before[key]), key)


if __name__ == "__main__":
    unittest.main()
