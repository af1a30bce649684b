"""Who answers the model calls of rollouts: the trainer's own model, or a server that the trainer keeps up to date."""

from __future__ import annotations

import asyncio
import queue
from concurrent.futures import Future
from contextlib import contextmanager, nullcontext
from typing import Any, Callable, ContextManager, Iterator, Mapping, Protocol, Sequence

from ..errors import ChannelError
from ..frames import float32, int32
from ..open_rollout import ModelCall, Sampled
from .keys import evaluation_seed


class Engine(Protocol):
    async def sample(self, call: ModelCall, sampling: Mapping[str, Any]) -> Sampled:
        """Samples after the call's prompt, in the thread of the channel. `sampling` {temperature, topP, topK, repetitionPenalty} is
        the trainer's and wins over the agent's; length and stop texts are the call's. Raises ChannelError POLICY_*."""

    def drive(self, done: Future[Any]) -> None:
        """Called in the trainer's thread; returns when `done` is."""

    async def close(self) -> None: ...


class Sampler(Protocol):
    """What samples between `add` and the answers of a `step`: requests as `PumpedEngine.request` made them."""

    busy: bool

    def add(self, request: Any) -> None: ...

    def step(self) -> list[tuple[Any, Sampled | ChannelError]]: ...


class PumpedEngine:
    """An engine that samples only in the thread that calls `drive`: the trainer's."""

    def __init__(self) -> None:
        self._calls: queue.SimpleQueue[tuple[Any, asyncio.AbstractEventLoop, asyncio.Future[Sampled]] | None] = queue.SimpleQueue()

    def request(self, call: ModelCall, sampling: Mapping[str, Any]) -> Any:
        """What `sampler` takes; each is an object of its own. Raises ChannelError for a call that it cannot answer."""
        raise NotImplementedError

    def sampler(self) -> ContextManager[Sampler]:
        raise NotImplementedError

    async def sample(self, call: ModelCall, sampling: Mapping[str, Any]) -> Sampled:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Sampled] = loop.create_future()
        self._calls.put((self.request(call, sampling), loop, answer))
        return await answer

    def drive(self, done: Future[Any]) -> None:
        done.add_done_callback(lambda _: self._calls.put(None))
        waiting: dict[int, tuple[asyncio.AbstractEventLoop, asyncio.Future[Sampled]]] = {}
        with self.sampler() as sampler:
            while not done.done():
                for request, loop, answer in self._arrived(wait=not sampler.busy):
                    waiting[id(request)] = loop, answer
                    sampler.add(request)
                if sampler.busy:
                    for request, value in sampler.step():
                        loop, answer = waiting.pop(id(request))
                        loop.call_soon_threadsafe(_settle, answer, value)

    async def close(self) -> None: ...

    def _arrived(self, *, wait: bool) -> Iterator[tuple[Any, asyncio.AbstractEventLoop, asyncio.Future[Sampled]]]:
        while True:
            try:
                call = self._calls.get(block=wait)
            except queue.Empty:
                return
            if call is not None:
                yield call
            wait = False


class ModelEngine(PumpedEngine):
    """The model that is being trained, a Hugging Face one.

    `model` gives it, unwrapped, each time that sampling begins; `version` counts its weights, which do not change meanwhile;
    `precision` is the context in which the trainer computes logprobs. It samples from the whole distribution. Each process samples
    with the model it has, so the weights must be whole in each.
    """

    def __init__(
        self,
        model: Callable[[], Any],
        text: Callable[[Sequence[int]], str],
        stop_token_ids: Sequence[int],
        *,
        context: int,
        version: Callable[[], int],
        precision: Callable[[], ContextManager[Any]] = nullcontext,
        seed: int = 0,
    ) -> None:
        super().__init__()
        self._model, self._text, self._stop_token_ids = model, text, tuple(stop_token_ids)
        self._context, self._version, self._precision, self._seed = context, version, precision, seed
        self._drives = 0

    def request(self, call: ModelCall, sampling: Mapping[str, Any]) -> Any:
        from ..sample.batcher import Request
        from ..sample.sampling import read_sampling

        room = self._context - len(call.prompt_ids)
        if room < 1:
            raise ChannelError("POLICY_CONTEXT_OVERFLOW", f"A prompt of {len(call.prompt_ids)} tokens leaves no room in the model's context of {self._context}.")
        options = {**_to_vllm(sampling), "max_tokens": int(call.sampling["maxTokens"]), "stop": list(call.sampling.get("stop") or [])}
        try:
            return Request(call.prompt_ids.tolist(), read_sampling(options, default_limit=room, room=room, end_ids=self._stop_token_ids))
        except ValueError as error:
            raise ChannelError("POLICY_FAILED", str(error)) from error

    @contextmanager
    def sampler(self) -> Iterator[Sampler]:
        from ..sample.batcher import Batcher

        model, version = self._model(), self._version()
        self._drives += 1
        was_training = model.training
        model.eval()
        try:
            with self._precision():
                yield _ModelSampler(Batcher(model, self._text, seed=hash((self._seed, version, self._drives)) & (1 << 62) - 1), version)
        finally:
            model.train(was_training)


class _ModelSampler:
    def __init__(self, batcher: Any, version: int) -> None:
        self._batcher, self._version = batcher, version
        self.add = batcher.add

    @property
    def busy(self) -> bool:
        return self._batcher.busy

    def step(self) -> list[tuple[Any, Sampled | ChannelError]]:
        try:
            ended = self._batcher.step()
        except Exception as error:  # every request of the batch fails with it, and the next one is tried
            failed = ChannelError("POLICY_FAILED", f"The trainer's model failed to sample: {type(error).__name__}: {error}")
            return [(request, failed) for request in self._batcher.abort_all()]
        version = self._version
        return [(each, Sampled(int32(each.ids), float32(each.logprobs), each.finish, version, version)) for each in ended]


class HttpEngine:
    """A server of vLLM, asked at `/v1/completions` by token ids; the trainer pushes its weights there before it asks for rollouts.

    The server must report `processed_logprobs`. `version` counts the weights that it has. `close` ends the connections.
    """

    def __init__(self, url: str, model: str, stop_token_ids: Sequence[int], *, version: Callable[[], int], seed: int = 0, token: str = "", timeout_seconds: float = 3600) -> None:
        self._url, self._model, self._stop_token_ids = url.rstrip("/"), model, list(stop_token_ids)
        self._version, self._seed, self._token, self._timeout_seconds = version, seed, token, timeout_seconds
        self._session: Any = None

    async def sample(self, call: ModelCall, sampling: Mapping[str, Any]) -> Sampled:
        version = self._version()
        body = {
            **_to_vllm(sampling),
            "model": self._model,
            "prompt": call.prompt_ids.tolist(),
            "max_tokens": int(call.sampling["maxTokens"]),
            "stop": list(call.sampling.get("stop") or []),
            "stop_token_ids": self._stop_token_ids,
            "logprobs": 0,
            "return_token_ids": True,
        }
        if (seed := evaluation_seed(self._seed, call.key, call.trajectory, call.turn)) is not None:
            body["seed"] = seed
        return _read_completion(await self._post(body), version, self._url)

    def drive(self, done: Future[Any]) -> None:
        from concurrent.futures import wait

        wait([done])

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def _post(self, body: Mapping[str, Any]) -> Any:
        import aiohttp

        if self._session is None:
            # Idle connections are closed here before the server does, so that no request meets a closing one.
            connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=2)
            self._session = aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=self._timeout_seconds), trust_env=False)
        headers = {"Authorization": f"Bearer {self._token}"} if self._token else {}
        try:
            async with self._session.post(f"{self._url}/v1/completions", json=body, headers=headers) as response:
                if response.status == 200:
                    return await response.json(content_type=None)
                text = (await response.text())[:2000]
                busy = response.status in (408, 429) or response.status >= 500
                raise ChannelError("POLICY_UNAVAILABLE" if busy else "POLICY_FAILED", f"{self._url} answered HTTP {response.status}: {text}", busy)
        except (aiohttp.ClientError, asyncio.TimeoutError, OSError) as error:
            raise ChannelError("POLICY_UNAVAILABLE", f"{self._url} does not answer: {type(error).__name__}: {error}; check that the server runs.", True) from error
        except ValueError as error:
            raise ChannelError("POLICY_RESPONSE_INVALID", f"{self._url} answered something else than JSON: {error}.") from error


def _read_completion(answer: Any, version: int, url: str) -> Sampled:
    """The one choice of an answer of vLLM's `/v1/completions`. Raises POLICY_RESPONSE_INVALID."""
    try:
        [choice] = answer["choices"]
        ids, logprobs = choice["token_ids"], choice["logprobs"]["token_logprobs"]
        if len(ids) != len(logprobs):
            raise ValueError(f"{len(ids)} ids and {len(logprobs)} logprobs")
        finish = {"stop": "stop", "length": "length", "abort": "aborted"}[choice["finish_reason"]]
        return Sampled(int32(ids), float32(logprobs), finish, version, version)
    except (ChannelError, KeyError, TypeError, ValueError) as error:
        message = f"The answer of {url}/v1/completions lacks token ids with their logprobs ({type(error).__name__}: {error}); it must be vLLM, 0.11 or newer."
        raise ChannelError("POLICY_RESPONSE_INVALID", message) from error


def _to_vllm(sampling: Mapping[str, Any]) -> dict[str, Any]:
    """Sampling parameters as vLLM names them."""
    names = {"temperature": "temperature", "topP": "top_p", "topK": "top_k", "repetitionPenalty": "repetition_penalty"}
    return {name: sampling[key] for key, name in names.items() if key in sampling}


def _settle(answer: asyncio.Future[Sampled], value: Sampled | ChannelError) -> None:
    if answer.done():
        return
    if isinstance(value, ChannelError):
        answer.set_exception(value)
    else:
        answer.set_result(value)
