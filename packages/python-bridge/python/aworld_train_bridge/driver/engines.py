"""Who answers the model calls of rollouts: the trainer's own model, or a server that the trainer keeps up to date."""

from __future__ import annotations

import asyncio
import queue
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, Callable, Iterator, Mapping, Protocol, Sequence

from ..errors import ChannelError
from ..frames import float32, int32
from ..open_rollout import ModelCall, Sampled


class Engine(Protocol):
    async def sample(self, call: ModelCall, sampling: Mapping[str, Any]) -> Sampled:
        """Samples after the call's prompt, in the thread of the channel. `sampling` {temperature, topP, topK, repetitionPenalty} is
        the trainer's and wins over the agent's; length and stop texts are the call's. Raises ChannelError POLICY_*."""

    def drive(self, done: Future[Any]) -> None:
        """Called in the trainer's thread; returns when `done` is."""

    async def close(self) -> None: ...


class ModelEngine:
    """The model that is being trained, a Hugging Face one, called only from the thread that calls `drive`: the trainer's.

    `model` gives it, unwrapped, each time that sampling begins; `version` counts its weights, which do not change meanwhile. It
    samples from the whole distribution. Each process samples with the model it has, so the weights must be whole in each.
    """

    def __init__(
        self, model: Callable[[], Any], text: Callable[[Sequence[int]], str], stop_token_ids: Sequence[int], *, context: int, version: Callable[[], int], seed: int = 0
    ) -> None:
        self._model, self._text, self._stop_token_ids = model, text, tuple(stop_token_ids)
        self._context, self._version, self._seed = context, version, seed
        self._calls: queue.SimpleQueue[tuple[Any, asyncio.AbstractEventLoop, asyncio.Future[Sampled]] | None] = queue.SimpleQueue()
        self._drives = 0

    async def sample(self, call: ModelCall, sampling: Mapping[str, Any]) -> Sampled:
        request = self._to_request(call, sampling)
        answer: asyncio.Future[Sampled] = asyncio.get_running_loop().create_future()
        self._calls.put((request, asyncio.get_running_loop(), answer))
        return await answer

    def drive(self, done: Future[Any]) -> None:
        from ..sample.batcher import Batcher

        done.add_done_callback(lambda _: self._calls.put(None))
        version = self._version()
        self._drives += 1
        waiting: dict[Any, tuple[asyncio.AbstractEventLoop, asyncio.Future[Sampled]]] = {}
        with _evaluating(self._model()) as model:
            batcher = Batcher(model, self._text, seed=hash((self._seed, version, self._drives)) & (1 << 62) - 1)
            while not done.done():
                for request, loop, answer in self._arrived(wait=not batcher.busy):
                    waiting[request] = loop, answer
                    batcher.add(request)
                if not batcher.busy:
                    continue
                try:
                    ended, error = batcher.step(), None
                except Exception as cause:  # every request of the batch fails with it, and the next one is tried
                    ended, error = batcher.abort_all(), ChannelError("POLICY_FAILED", f"The trainer's model failed to sample: {type(cause).__name__}: {cause}")
                for request in ended:
                    loop, answer = waiting.pop(request)
                    loop.call_soon_threadsafe(_settle, answer, error or _to_sampled(request, version))

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

    def _to_request(self, call: ModelCall, sampling: Mapping[str, Any]) -> Any:
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


class HttpEngine:
    """A server of vLLM, asked at `/v1/completions` by token ids; the trainer pushes its weights there before it asks for rollouts.

    The server must report `processed_logprobs`. `version` counts the weights that it has. `close` ends the connections.
    """

    def __init__(self, url: str, model: str, stop_token_ids: Sequence[int], *, version: Callable[[], int], token: str = "", timeout_seconds: float = 3600) -> None:
        self._url, self._model, self._stop_token_ids = url.rstrip("/"), model, list(stop_token_ids)
        self._version, self._token, self._timeout_seconds = version, token, timeout_seconds
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
        return self._read(await self._post(body), version)

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

    def _read(self, answer: Any, version: int) -> Sampled:
        try:
            [choice] = answer["choices"]
            ids, logprobs = choice["token_ids"], choice["logprobs"]["token_logprobs"]
            if len(ids) != len(logprobs):
                raise ValueError(f"{len(ids)} ids and {len(logprobs)} logprobs")
            finish = {"stop": "stop", "length": "length", "abort": "aborted"}[choice["finish_reason"]]
            return Sampled(int32(ids), float32(logprobs), finish, version, version)
        except (ChannelError, KeyError, TypeError, ValueError) as error:
            message = f"The answer of {self._url}/v1/completions lacks token ids with their logprobs ({type(error).__name__}: {error}); it must be vLLM, 0.11 or newer."
            raise ChannelError("POLICY_RESPONSE_INVALID", message) from error


def _to_vllm(sampling: Mapping[str, Any]) -> dict[str, Any]:
    """Sampling parameters as vLLM names them."""
    names = {"temperature": "temperature", "topP": "top_p", "topK": "top_k", "repetitionPenalty": "repetition_penalty"}
    return {name: sampling[key] for key, name in names.items() if key in sampling}


def _to_sampled(request: Any, version: int) -> Sampled:
    return Sampled(int32(request.ids), float32(request.logprobs), request.finish, version, version)


def _settle(answer: asyncio.Future[Sampled], value: Sampled | ChannelError) -> None:
    if answer.done():
        return
    if isinstance(value, ChannelError):
        answer.set_exception(value)
    else:
        answer.set_result(value)


@contextmanager
def _evaluating(model: Any) -> Iterator[Any]:
    """The model without dropout and without gradient checkpointing, which leave a trainer's mode as it was."""
    was_training = model.training
    model.eval()
    try:
        yield model
    finally:
        model.train(was_training)
