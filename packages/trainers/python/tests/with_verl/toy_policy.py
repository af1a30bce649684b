"""A sampler in place of verl's rollout servers: words of the tokenizer by a seeded draw, then the stop token."""

from __future__ import annotations

import asyncio
import random
from typing import Any

from verl.workers.rollout.replica import TokenOutput


class ToyPolicy:
    """Answers `generate` as LLMServerClient does (verl/workers/rollout/llm_server.py, 0.9.1), and counts what it samples."""

    def __init__(self, tokenizer: Any, delay_seconds: float = 0.0, seed: int = 0) -> None:
        self._words = tokenizer.encode("Iron is heavy and gold is heavier still.", add_special_tokens=False)
        self._stop = tokenizer.eos_token_id
        self._delay = delay_seconds
        self._random = random.Random(seed)
        self.calls = 0
        self.tokens = 0
        self.fault: Any = None

    async def generate(self, request_id: str, *, prompt_ids: list[int], sampling_params: dict[str, Any], **more: Any) -> TokenOutput:
        self.calls += 1
        if self._delay:
            await asyncio.sleep(self._delay)
        ids = self._random.choices(self._words, k=self._random.randint(1, 6))[: sampling_params["max_tokens"]]
        if len(ids) < sampling_params["max_tokens"]:
            ids.append(self._stop)
        logprobs = [-self._random.random() for _ in ids]
        if self.fault is not None and (answer := self.fault(self.calls, ids, logprobs)) is not None:
            ids, logprobs = answer
        self.tokens += len(ids)
        return TokenOutput(token_ids=ids, log_probs=logprobs, stop_reason="completed" if ids else "aborted", extra_fields={"global_steps": 0, "min_global_steps": 0, "max_global_steps": 0})
