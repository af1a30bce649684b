"""A server of one Hugging Face model for many callers, whose weights change while it samples."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
from aworld_train_bridge.shared.model_facts import Limits
from aworld_train_bridge.sample.batcher import Batcher, Request
from aworld_train_bridge.sample.sampling import read_sampling
from aworld_train_bridge.sample.weights import load_weights


class SamplingServer:
    """Samples for everyone who calls `generate`, and changes weights between two tokens.

    Runs on one asyncio loop; the model computes in a thread of its own. `record("engine", …)` is told of each answer once:
    `{requestId, tokens, version}`, counted here where the tokens were drawn; `record("busy", …)` of each stretch of time in which
    there was something to sample: `{from, to, steps}`, in milliseconds since 1970.
    """

    def __init__(
        self,
        model: torch.nn.Module,
        text: Callable[[Sequence[int]], str],
        end_ids: Sequence[int],
        limits: Limits,
        *,
        seed: int = 0,
        record: Callable[[str, dict[str, Any]], None] = lambda *_: None,
    ) -> None:
        self.version: int | None = None
        self._model, self._end_ids, self._limits, self._record = model, tuple(end_ids), limits, record
        self._batcher = Batcher(model, text, seed=seed)
        self._answers: dict[Request, tuple[str, asyncio.Future[int | None]]] = {}
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="cpu-sampler")
        self._computing = asyncio.Lock()
        self._work = asyncio.Event()
        self._gate = asyncio.Event()
        self._gate.set()
        self._paused = self._asleep = self._rejecting = False
        self._loop: asyncio.Task[None] | None = None

    async def generate(self, prompt_ids: Sequence[int], options: Mapping[str, Any], request_id: str) -> dict[str, Any]:
        """What `sample` answers, in the fields of verl's `TokenOutput` (`workers/rollout/replica.py`, verl 0.9)."""
        return _output(*await self.sample(prompt_ids, options, request_id))

    async def sample(self, prompt_ids: Sequence[int], options: Mapping[str, Any], request_id: str) -> tuple[Request, int | None]:
        """The request with what was drawn, and the version of the weights. Waits while the server is paused or asleep; `aborted` where a pause fell into it."""
        request = Request([int(id) for id in prompt_ids], self._sampling(prompt_ids, options))
        while not self._gate.is_set():
            if self._rejecting:
                request.finish = "aborted"
                return request, self.version
            await self._gate.wait()
        if self._loop is None or self._loop.done():
            self._loop = asyncio.create_task(self._sample())
        answer: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()
        self._answers[request] = request_id, answer
        self._batcher.add(request)
        self._work.set()
        return request, await answer

    async def load_weights(self, sent: Mapping[str, torch.Tensor], version: int | None) -> int:
        """Replaces all weights between two tokens; requests under way end as `aborted` with what they have."""
        async with self._computing:
            self._settle(self._batcher.abort_all())
            loaded = load_weights(self._model, sent)
            if version is not None:
                self.version = version
        self._asleep = False
        self._open_gate()
        return loaded

    async def abort_all(self, *, reject: bool = False) -> int:
        """Ends every request under way and holds (or with `reject` refuses) later ones until `resume`; returns how many ended."""
        self._paused, self._rejecting = True, reject
        self._gate.clear()
        async with self._computing:
            ended = self._batcher.abort_all()
            self._settle(ended)
        return len(ended)

    def resume(self) -> None:
        """Takes requests again after `abort_all`."""
        self._paused = self._rejecting = False
        self._open_gate()

    async def sleep(self) -> None:
        """Holds requests until `wake` or the next weights, as an engine that gave its memory to the trainer."""
        self._asleep = True
        self._gate.clear()
        async with self._computing:
            self._settle(self._batcher.abort_all())

    def wake(self) -> None:
        """Takes requests again after `sleep`."""
        self._asleep = False
        self._open_gate()

    async def close(self) -> None:
        """Ends what runs and the thread."""
        if self._loop is not None:
            self._loop.cancel()
            await asyncio.gather(self._loop, return_exceptions=True)
        self._settle(self._batcher.abort_all())
        self._thread.shutdown()

    def _sampling(self, prompt_ids: Sequence[int], options: Mapping[str, Any]) -> Any:
        vocabulary, limits = self._model.config.vocab_size, self._limits
        if not len(prompt_ids):
            raise ValueError("The prompt has no tokens.")
        outside = [id for id in prompt_ids if not 0 <= id < vocabulary]
        if outside:
            raise ValueError(f"The prompt has id {outside[0]}; the model's vocabulary ends at {vocabulary - 1}.")
        room = limits.context - len(prompt_ids)
        if room < 1:
            raise ValueError(f"A prompt of {len(prompt_ids)} tokens leaves no room in a context of {limits.context}.")
        default = min(limits.response, limits.prompt + limits.response - len(prompt_ids))
        return read_sampling(options, default_limit=default, room=room, end_ids=self._end_ids)

    async def _sample(self) -> None:
        loop, since, steps = asyncio.get_running_loop(), 0.0, 0
        while True:
            await self._work.wait()
            if not steps:
                since = time.time()
            steps += 1
            async with self._computing:
                try:
                    self._settle(await loop.run_in_executor(self._thread, self._batcher.step))
                except Exception as error:  # every request of the batch fails with it, and sampling goes on
                    self._settle(self._batcher.abort_all(), error)
            if not self._batcher.busy:
                self._work.clear()
                self._record("busy", {"from": round(since * 1000, 1), "to": round(time.time() * 1000, 1), "steps": steps})
                steps = 0

    def _settle(self, ended: Sequence[Request], error: Exception | None = None) -> None:
        """Counts what was drawn and answers; the version is that of the weights which drew it."""
        for request in ended:
            request_id, answer = self._answers.pop(request)
            if request.ids:
                self._record("engine", {"requestId": request_id, "tokens": len(request.ids), "version": self.version})
            if answer.done():
                continue
            if error is None:
                answer.set_result(self.version)
            else:
                answer.set_exception(RuntimeError(f"The CPU sampler failed: {error}"))

    def _open_gate(self) -> None:
        if not (self._paused or self._asleep):
            self._gate.set()


def _output(request: Request, version: int | None) -> dict[str, Any]:
    return {
        "token_ids": request.ids,
        "log_probs": request.logprobs,
        "stop_reason": "aborted" if request.finish == "aborted" else "completed",
        "num_preempted": 0,
        "extra_fields": {"global_steps": version},
    }
