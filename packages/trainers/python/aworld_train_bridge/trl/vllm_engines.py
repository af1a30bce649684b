"""TRL's own vLLM: a server that TRL pushes its weights to, or the one that it has in its process."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any, Callable, Iterator, Mapping, Sequence

from ..shared.engines import Engine, HttpEngine, PumpedEngine
from ..shared.keys import evaluation_seed
from ..errors import ChannelError, RunError
from ..frames import float32, int32
from ..open_rollout import ModelCall, Sampled


def engine_of(generation: Any, stop_token_ids: Sequence[int], version: Callable[[], int], seed: int) -> Engine:
    """The engine of trl.generation.vllm_generation.VLLMGeneration, whose weights TRL pushes before it asks for rollouts."""
    if generation.mode == "server":
        return HttpEngine(generation.vllm_client.base_url, generation.vllm_client.model, stop_token_ids, version=version, seed=seed)
    return ColocatedEngine(generation, stop_token_ids, version, seed)


class ColocatedEngine(PumpedEngine):
    """vLLM in the trainer's process: calls that arrived together are sampled together. Has not run, for want of a GPU."""

    def __init__(self, generation: Any, stop_token_ids: Sequence[int], version: Callable[[], int], seed: int) -> None:
        super().__init__()
        if generation.tensor_parallel_size != 1:
            message = "vllm_tensor_parallel_size is above 1, and each process samples its own rollouts; set it to 1, or vllm_mode to server."
            raise RunError("CONFIG_INVALID", message)
        if generation.enable_sleep_mode:
            raise RunError("CONFIG_INVALID", "vllm_enable_sleep_mode discards the weights that rollouts are sampled with; leave it out.")
        self._generation, self._stop_token_ids, self._version = generation, list(stop_token_ids), version
        self._seed = seed

    def request(self, call: ModelCall, sampling: Mapping[str, Any]) -> Any:
        from vllm import SamplingParams

        params = SamplingParams(
            temperature=sampling["temperature"],
            max_tokens=int(call.sampling["maxTokens"]),
            stop=list(call.sampling.get("stop") or []),
            stop_token_ids=self._stop_token_ids,
            logprobs=0,
            seed=evaluation_seed(self._seed, call.key, call.trajectory, call.turn),
        )
        return {"prompt_token_ids": call.prompt_ids.tolist()}, params

    @contextmanager
    def sampler(self) -> Iterator[_Waiting]:
        yield _Waiting(self._generation.llm, self._version())


class _Waiting:
    def __init__(self, llm: Any, version: int) -> None:
        self._llm, self._version = llm, version
        self._requests: list[Any] = []

    @property
    def busy(self) -> bool:
        return bool(self._requests)

    def add(self, request: Any) -> None:
        self._requests.append(request)

    def step(self) -> list[tuple[Any, Sampled | ChannelError]]:
        requests, self._requests = self._requests, []
        prompts, params = zip(*requests, strict=True)
        try:
            answers = [each.outputs[0] for each in self._llm.generate(list(prompts), list(params), use_tqdm=False)]
        except Exception as error:
            failed = ChannelError("POLICY_FAILED", f"vLLM failed to sample: {type(error).__name__}: {error}")
            return [(request, failed) for request in requests]
        return [(request, self._sampled(answer)) for request, answer in zip(requests, answers, strict=True)]

    def _sampled(self, answer: Any) -> Sampled:
        logprobs = [step[id].logprob for step, id in zip(answer.logprobs, answer.token_ids, strict=True)]
        finish = {"abort": "aborted"}.get(answer.finish_reason, answer.finish_reason)
        return Sampled(int32(answer.token_ids), float32(logprobs), finish, self._version, self._version)
