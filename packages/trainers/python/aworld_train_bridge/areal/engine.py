"""AReaL's inference client as the engine of rollouts: every model call is `agenerate`, which goes on over changes of weights."""

from __future__ import annotations

from concurrent.futures import Future, wait
from typing import Any, Mapping, Sequence

from ..errors import ChannelError
from ..frames import float32, int32
from ..open_rollout import ModelCall, Sampled

_FINISH = {"stop": "stop", "tool_calls": "stop", "length": "length"}


class Sampling(dict):
    """Sampling parameters in the words of the channel, and the client that draws with them: AReaL has one for training and one for evaluation."""

    def __init__(self, client: Any, temperature: float) -> None:
        super().__init__(temperature=temperature, topP=1.0, topK=-1, repetitionPenalty=1.0)
        self.client = client


class ArealEngine:
    """`gconfig` is AReaL's; `takes_stop_texts` says whether its client passes them on."""

    def __init__(self, gconfig: Any, tokenizer: Any, stop_token_ids: Sequence[int], context: int, *, takes_stop_texts: bool) -> None:
        self._gconfig, self._tokenizer, self._stop_token_ids = gconfig, tokenizer, list(stop_token_ids)
        self._context, self._takes_stop_texts = context, takes_stop_texts

    async def sample(self, call: ModelCall, sampling: Mapping[str, Any]) -> Sampled:
        from areal.api import ModelRequest

        assert isinstance(sampling, Sampling)
        prompt = call.prompt_ids.tolist()
        if len(prompt) >= self._context:
            raise ChannelError("POLICY_CONTEXT_OVERFLOW", f"A prompt of {len(prompt)} tokens leaves no room in the model's context of {self._context}.")
        stop = list(call.sampling.get("stop") or [])
        if stop and not self._takes_stop_texts:
            raise ChannelError("POLICY_FAILED", "AReaL's client of vLLM passes on no stop texts; leave `stop` out, or set rollout.backend to sglang.")
        gconfig = self._gconfig.new(
            n_samples=1,
            max_new_tokens=int(call.sampling["maxTokens"]),
            max_tokens=self._context,
            temperature=float(sampling["temperature"]),
            greedy=sampling["temperature"] == 0,
            stop_token_ids=self._stop_token_ids,
            stop=stop or None,
        )
        try:
            answer = await sampling.client.agenerate(ModelRequest(rid=call.key, input_ids=prompt, gconfig=gconfig, tokenizer=self._tokenizer))
        except Exception as error:  # whatever became of the server, this call has no answer
            raise ChannelError("POLICY_UNAVAILABLE", f"The inference server gave no answer: {type(error).__name__}: {error}", True) from error
        versions = answer.output_versions or [sampling.client.get_version()]
        return Sampled(int32(answer.output_tokens), float32(answer.output_logprobs), _FINISH[answer.stop_reason], min(versions), max(versions))

    def drive(self, done: Future[Any]) -> None:
        wait([done])

    async def close(self) -> None: ...
