"""Model calls of one rollout, answered by verl's rollout servers."""

from __future__ import annotations

from typing import Any, Callable, Mapping

from ..shared.ledger import Ledger
from ..errors import ChannelError
from ..frames import float32, int32
from ..open_rollout import ModelCall, Sampled


class ModelCalls:
    """Asks `client.generate` (verl/workers/rollout/llm_server.py, 0.9.1); verl's sampling parameters win over the agent's.

    The length, stop strings and the wish for logprobs are added to a copy of them. All calls of a rollout share one request id,
    which keeps them on one server. What was sampled is counted in the ledger, and what was not delivered there too.
    """

    def __init__(
        self,
        client: Any,
        key: str,
        sampling_params: Mapping[str, Any],
        *,
        stop_token_ids: frozenset[int],
        fallback_version: int,
        ledger: Ledger,
        on_version: Callable[[int], None],
    ) -> None:
        self._client = client
        self._key = key
        self._sampling_params = dict(sampling_params)
        self._stop_token_ids = stop_token_ids
        self._fallback_version = fallback_version
        self._ledger = ledger
        self._on_version = on_version
        self.preempted = -1

    async def serve(self, call: ModelCall) -> Sampled:
        """Samples. Raises ChannelError POLICY_* when verl cannot."""
        max_tokens = int(call.sampling["maxTokens"])
        stop = list(call.sampling.get("stop") or [])
        params = {**self._sampling_params, "logprobs": True, "max_tokens": max_tokens, **({"stop": stop} if stop else {})}
        try:
            output = await self._client.generate(request_id=self._key, prompt_ids=call.prompt_ids.tolist(), sampling_params=params)
        except Exception as error:
            raise _to_policy_error(error) from error
        sampled = self._to_sampled(output, max_tokens, bool(stop))
        self._ledger.write("sampled", {"key": self._key, "id": str(call.id), "version": sampled.max_version, "tokens": len(sampled.ids)})
        self._on_version(sampled.max_version)
        if output.num_preempted is not None and output.num_preempted >= 0:
            self.preempted = max(self.preempted, 0) + int(output.num_preempted)
        return sampled

    def lost(self, call: ModelCall, tokens: int, reason: str) -> None:
        """Tokens that verl sampled and no call of the agent received."""
        if tokens > 0:
            self._ledger.write("undelivered", {"key": self._key, "id": str(call.id), "tokens": tokens, "reason": reason})

    def _to_sampled(self, output: Any, max_tokens: int, has_stop: bool) -> Sampled:
        ids = output.token_ids
        if ids and output.log_probs is None:
            raise ChannelError("POLICY_RESPONSE_INVALID", "verl's rollout server gave no logprobs; use an engine that reports them.")
        versions = [output.extra_fields.get(name) for name in ("min_global_steps", "max_global_steps")]
        least, most = (self._fallback_version if version is None else int(version) for version in versions)
        return Sampled(int32(ids), float32(output.log_probs or []), self._finish(output, max_tokens, has_stop), least, most)

    def _finish(self, output: Any, max_tokens: int, has_stop: bool) -> str:
        """verl says `completed` for a stop and for a full length alike; the last token tells them apart."""
        if output.stop_reason in ("aborted", "abort"):
            return "aborted"
        ids = output.token_ids
        if ids and ids[-1] in self._stop_token_ids:
            return "stop"
        return "stop" if has_stop and output.stop_reason != "length" and len(ids) < max_tokens else "length"


def _to_policy_error(error: Exception) -> ChannelError:
    from ray import exceptions

    what = f"verl's rollout server failed: {type(error).__name__}: {str(error)[:2000]}"
    if isinstance(error, exceptions.ActorUnavailableError):
        return ChannelError("POLICY_UNAVAILABLE", what, True)
    if isinstance(error, exceptions.RayActorError):
        return ChannelError("POLICY_WORKER_DIED", what)
    return ChannelError("POLICY_FAILED", what)
