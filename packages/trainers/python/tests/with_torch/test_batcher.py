import unittest

import torch
from aworld_train_bridge.sample.batcher import Batcher, Request
from aworld_train_bridge.sample.sampling import Sampling, draw, read_sampling
from tiny_model import END, letters, tiny_model


def run(batcher: Batcher, requests: list[Request]) -> list[Request]:
    for request in requests:
        batcher.add(request)
    ended = []
    while batcher.busy:
        ended += batcher.step()
    return ended


def sampling(limit: int = 30, **given: object) -> Sampling:
    return Sampling(temperature=given.pop("temperature", 1.0), limit=limit, stop_ids=frozenset({END}), **given)


def recomputed(model: torch.nn.Module, request: Request) -> list[float]:
    """Logprobs of the sampled ids by one pass over the whole text, without cache or batch."""
    temperature = request.sampling.temperature or 1.0
    ids = [*request.prompt, *request.ids]
    with torch.inference_mode():
        logprobs = torch.log_softmax(model(torch.tensor([ids])).logits[0] / temperature, dim=-1)
    first = len(request.prompt) - 1
    return [float(logprobs[first + place, id]) for place, id in enumerate(request.ids)]


class Batched(unittest.TestCase):
    def test_logprobs_of_a_batch_are_those_of_one_pass_over_each_text(self) -> None:
        model = tiny_model()
        batcher = Batcher(model, letters, seed=3, max_running=9, max_prefill_tokens=64)
        lengths = torch.randint(1, 40, (40,), generator=torch.Generator().manual_seed(1)).tolist()
        requests = [
            Request([(row * 7 + at) % 41 for at in range(length)], sampling(temperature=0.5 + row % 3))
            for row, length in enumerate(lengths)
        ]
        ended = run(batcher, requests)
        self.assertEqual({id(request) for request in ended}, {id(request) for request in requests})
        self.assertTrue(any(r.finish == "stop" for r in ended) and any(r.finish == "length" for r in ended))
        worst = max(abs(a - b) for r in ended for a, b in zip(r.logprobs, recomputed(model, r), strict=True))
        self.assertLess(worst, 1e-5)

    def test_requests_that_come_later_join_those_that_run(self) -> None:
        model, late = tiny_model(), [Request([row + 1, 2, 3], sampling(12)) for row in range(5)]
        batcher = Batcher(model, letters, seed=4)
        first = [Request([9, 8, 7, row], sampling(25)) for row in range(5)]
        for request in first:
            batcher.add(request)
        for request in late:
            batcher.step()
            batcher.add(request)
        self.assertTrue(any(not request.finish for request in first))
        while batcher.busy:
            batcher.step()
        for request in (*first, *late):
            for a, b in zip(request.logprobs, recomputed(model, request), strict=True):
                self.assertAlmostEqual(a, b, delta=1e-5)

    def test_a_stop_token_is_kept_and_ends_the_turn(self) -> None:
        ended = run(Batcher(tiny_model(), letters, seed=5), [Request([1], sampling(60)) for _ in range(40)])
        stopped = [request for request in ended if request.finish == "stop"]
        self.assertGreater(len(stopped), 5)
        for request in stopped:
            self.assertEqual(request.ids.index(END), len(request.ids) - 1)
        for request in ended:
            self.assertTrue(request.finish == "stop" or len(request.ids) == 60)

    def test_a_stop_text_ends_the_turn(self) -> None:
        ended = run(Batcher(tiny_model(), letters, seed=6), [Request([1], sampling(60, stop_texts=("B",))) for _ in range(30)])
        hits = [request for request in ended if "B" in letters(request.ids)]
        self.assertGreater(len(hits), 3)
        for request in hits:
            self.assertEqual((letters(request.ids).index("B"), request.finish), (len(request.ids) - 1, "stop"))

    def test_a_seed_gives_the_same_tokens_in_any_company(self) -> None:
        model = tiny_model()
        alone = run(Batcher(model, letters, seed=1), [Request([3, 4], sampling(seed=11))])[0]
        company = [Request([row + 1], sampling()) for row in range(6)]
        again = Request([3, 4], sampling(seed=11))
        run(Batcher(model, letters, seed=2), [*company, again])
        self.assertEqual(alone.ids, again.ids)

    def test_the_same_prompts_in_another_order_and_company_give_the_same_tokens(self) -> None:
        model = tiny_model()
        prompts = [[row % 4 + 1, 7] for row in range(12)]

        def drawn(order: list[int], max_running: int) -> dict[int, list[list[int]]]:
            requests = [Request(prompts[row], sampling()) for row in order]
            run(Batcher(model, letters, seed=9, max_running=max_running), requests)
            return {first: sorted(request.ids for request in requests if request.prompt[0] == first) for first in range(1, 5)}

        first = drawn(list(range(12)), 12)
        self.assertEqual(first, drawn([11, 3, 0, 7, 8, 1, 10, 4, 2, 9, 5, 6], 5))
        self.assertEqual(len({tuple(ids) for ids in first[1]}), 3)

    def test_aborting_keeps_what_was_sampled(self) -> None:
        batcher = Batcher(tiny_model(), letters, seed=7, max_running=2)
        requests = [Request([5, 6], Sampling(1.0, 50, frozenset())) for _ in range(3)]
        for request in requests:
            batcher.add(request)
        for _ in range(4):
            batcher.step()
        self.assertEqual(batcher.abort_all(), requests)
        self.assertEqual([len(request.ids) for request in requests], [4, 4, 0])
        self.assertEqual({request.finish for request in requests}, {"aborted"})
        self.assertFalse(batcher.busy)
        after = run(batcher, [Request([1, 2, 3], sampling())])[0]
        self.assertLess(max(abs(a - b) for a, b in zip(after.logprobs, recomputed(batcher.model, after), strict=True)), 1e-5)

    def test_a_model_with_sliding_layers_is_refused(self) -> None:
        model = tiny_model()
        model.config.layer_types = ["full_attention", "sliding_attention"]
        with self.assertRaisesRegex(ValueError, "sliding_attention"):
            Batcher(model, letters)


class Drawing(unittest.TestCase):
    def test_tokens_come_as_often_as_their_probability_says(self) -> None:
        logits = torch.tensor([[0.0, 1.0, 2.0, float("-inf")]])
        draws = 40_000
        uniforms = torch.rand(draws, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        ids, logprobs = draw(logits.expand(draws, 4), torch.full((draws,), 2.0), uniforms)
        expected = torch.softmax(logits[0] / 2, dim=-1)
        counts = torch.bincount(ids, minlength=4) / draws
        self.assertLess(float((counts - expected).abs().max()), 0.01)
        self.assertEqual(int(counts[3] * draws), 0)
        self.assertTrue(torch.allclose(logprobs, torch.log(expected)[ids]))

    def test_the_ends_of_the_unit_interval_give_tokens_that_are_possible(self) -> None:
        logits = torch.tensor([[float("-inf"), 0.0, float("-inf")]]).expand(2, 3)
        ids, _ = draw(logits, torch.ones(2), torch.tensor([0.0, 1 - 2**-53], dtype=torch.float64))
        self.assertEqual(ids.tolist(), [1, 1])

    def test_temperature_zero_takes_the_likeliest(self) -> None:
        logits = torch.randn(5, 17, generator=torch.Generator().manual_seed(2))
        ids, logprobs = draw(logits, torch.zeros(5), torch.rand(5, dtype=torch.float64))
        self.assertEqual(ids.tolist(), logits.argmax(dim=-1).tolist())
        self.assertTrue(torch.allclose(logprobs, torch.log_softmax(logits, dim=-1).max(dim=-1).values))


class Options(unittest.TestCase):
    def read(self, **options: object) -> Sampling:
        return read_sampling(options, default_limit=50, room=80, end_ids=[END])

    def test_reads_what_verl_sends(self) -> None:
        sent = {"temperature": 0.7, "top_p": 1.0, "top_k": -1, "repetition_penalty": 1.0, "logprobs": True, "max_tokens": 40}
        self.assertEqual(self.read(**sent), Sampling(0.7, 40, frozenset({END})))
        self.assertEqual(self.read().limit, 50)
        self.assertEqual(self.read(max_tokens=500).limit, 80)
        self.assertEqual(self.read(max_tokens=0).limit, 1)
        self.assertEqual(self.read(ignore_eos=True, stop_token_ids=[3]).stop_ids, frozenset({3}))
        self.assertEqual(self.read(stop="x").stop_texts, ("x",))

    def test_refuses_what_it_would_have_to_ignore(self) -> None:
        for options, named in (({"top_p": 0.9}, "top_p is 0.9"), ({"top_k": 20}, "top_k is 20"), ({"min_p": 0.1}, "min_p"), ({"temperature": -1}, "temperature")):
            with self.assertRaisesRegex(ValueError, named):
                self.read(**options)


if __name__ == "__main__":
    unittest.main()
