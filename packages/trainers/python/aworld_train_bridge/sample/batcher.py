"""Continuous batching over one Hugging Face model, many requests in flight."""

from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Literal

import torch
from aworld_train_bridge.sample.sampling import Sampling, draw
from aworld_train_bridge.sample.slot_cache import SlotCache

Finish = Literal["stop", "length", "aborted"]


@dataclass(eq=False)
class Request:
    """A request under way: its prompt, what was sampled so far, and why it ended."""

    prompt: Sequence[int]
    sampling: Sampling
    ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    finish: Finish | None = None
    generator: torch.Generator | None = None

    @property
    def stored(self) -> int:
        """Positions whose keys and values are kept: every token but the last sampled one."""
        return len(self.prompt) + max(0, len(self.ids) - 1)


class Batcher:
    """Samples for many requests at once: each `step` starts what waits and draws one token for all that run.

    Not safe for threads: one caller at a time. `text` turns ids into text, for stop texts. What is drawn depends on `seed`, on a
    request's prompt and on how many requests had that prompt before, never on the company or the order in which requests come.
    """

    def __init__(
        self,
        model: Any,
        text: Callable[[Sequence[int]], str],
        *,
        seed: int = 0,
        max_running: int = 256,
        max_prefill_tokens: int = 16384,
    ) -> None:
        kinds = set(getattr(model.config, "layer_types", None) or ["full_attention"])
        if kinds != {"full_attention"}:
            raise ValueError(f"The sampler knows full attention only, and the model has {', '.join(sorted(kinds))}.")
        if (attention := getattr(model.config, "_attn_implementation", None)) not in ("sdpa", "eager", None):
            raise ValueError(f"The sampler's masks need sdpa or eager attention, and the model has {attention}; load it with attn_implementation sdpa.")
        self.model = model
        self.waiting: deque[Request] = deque()
        self.running: list[Request] = []
        self._text = text
        self._cache = SlotCache(model.config.num_hidden_layers)
        self._seed = seed
        self._asked: Counter[bytes] = Counter()
        self._max_running = max_running
        self._max_prefill_tokens = max_prefill_tokens

    def add(self, request: Request) -> None:
        """Queues a request for the next step."""
        seed = request.sampling.seed
        request.generator = torch.Generator().manual_seed(self._seed_of(request.prompt) if seed is None else seed)
        self.waiting.append(request)

    def _seed_of(self, prompt: Sequence[int]) -> int:
        prompt_bytes = sha256(repr((self._seed, [int(id) for id in prompt])).encode()).digest()
        self._asked[prompt_bytes] += 1
        drawn = sha256(prompt_bytes + self._asked[prompt_bytes].to_bytes(8, "little")).digest()
        return int.from_bytes(drawn[:8], "little") >> 1

    @property
    def busy(self) -> bool:
        """Whether a step would do something."""
        return bool(self.waiting or self.running)

    @torch.inference_mode()
    def step(self) -> list[Request]:
        """Starts waiting requests, draws one token for each running one, and returns those that ended."""
        ended: list[Request] = []
        if self.running:
            self._advance(0, [[request.ids[-1]] for request in self.running], [request.stored for request in self.running])
            ended += self._remove_ended()
        if started := self._admit():
            first = len(self.running)
            self.running += started
            self._advance(first, [request.prompt for request in started], [0] * len(started))
            ended += self._remove_ended()
        return ended

    def abort_all(self) -> list[Request]:
        """Ends every request with what it has so far."""
        ended = [*self.running, *self.waiting]
        for request in ended:
            request.finish = "aborted"
        self.running.clear()
        self.waiting.clear()
        return ended

    def _admit(self) -> list[Request]:
        started: list[Request] = []
        longest = 0
        while self.waiting and len(self.running) + len(started) < self._max_running:
            longest = max(longest, len(self.waiting[0].prompt))
            if started and longest * (len(started) + 1) > self._max_prefill_tokens:
                break
            started.append(self.waiting.popleft())
        return started

    def _advance(self, first: int, new: Sequence[Sequence[int]], before: Sequence[int]) -> None:
        """Runs the model on `new` ids of the rows from `first` on, `before` of which are stored, and appends one drawn token to each."""
        requests = self.running[first : first + len(new)]
        device, dtype = self.model.device, self.model.dtype
        lengths = torch.tensor([len(ids) for ids in new], device=device)
        width = int(lengths.max())
        ids = torch.zeros(len(new), width, dtype=torch.long)
        for row, given in enumerate(new):
            ids[row, : len(given)] = torch.as_tensor(given)
        positions = torch.tensor(before, device=device).unsqueeze(1) + torch.arange(width, device=device)
        read = int(positions.max()) + 1
        self._cache.aim(slice(first, first + len(new)), positions, read)
        seen = torch.arange(read, device=device) <= positions.unsqueeze(2)
        last, row_of = torch.unique(lengths - 1, return_inverse=True)
        logits = self.model(
            input_ids=ids.to(device),
            attention_mask=torch.where(seen, 0.0, torch.finfo(dtype).min).to(dtype).unsqueeze(1),
            position_ids=positions,
            past_key_values=self._cache,
            use_cache=True,
            logits_to_keep=last,
        ).logits[torch.arange(len(new), device=device), row_of]
        temperatures = torch.tensor([request.sampling.temperature for request in requests])
        drawn, logprobs = draw(logits.cpu(), temperatures, self._uniforms(requests))
        for request, id, logprob in zip(requests, drawn.tolist(), logprobs.tolist(), strict=True):
            request.ids.append(id)
            request.logprobs.append(logprob)
            request.finish = self._finish(request)

    def _uniforms(self, requests: Sequence[Request]) -> torch.Tensor:
        return torch.stack([torch.rand((), generator=request.generator, dtype=torch.float64) for request in requests])

    def _finish(self, request: Request) -> Finish | None:
        sampling = request.sampling
        if request.ids[-1] in sampling.stop_ids:
            return "stop"
        if sampling.stop_texts:
            text = self._text(request.ids)
            if any(stop in text for stop in sampling.stop_texts):
                return "stop"
        return "length" if len(request.ids) >= sampling.limit else None

    def _remove_ended(self) -> list[Request]:
        """Takes out what ended; the last rows move into the gaps."""
        ended: list[Request] = []
        row = 0
        while row < len(self.running):
            if self.running[row].finish is None:
                row += 1
                continue
            ended.append(self.running[row])
            last = self.running.pop()
            if row < len(self.running):
                self._cache.move(len(self.running), row, last.stored)
                self.running[row] = last
        return ended
