"""What a request asks of the sampler, and the draw of one token for many requests at once."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

_KNOWN = {
    "temperature", "top_p", "top_k", "repetition_penalty", "logprobs", "seed", "max_tokens", "max_new_tokens",
    "stop", "stop_token_ids", "ignore_eos",
}  # fmt: skip


@dataclass(frozen=True)
class Sampling:
    """How one request is sampled. `temperature` 0 takes the likeliest token; `limit` is the most tokens to draw."""

    temperature: float
    limit: int
    stop_ids: frozenset[int]
    stop_texts: tuple[str, ...] = ()
    seed: int | None = None


def read_sampling(options: Mapping[str, Any], *, default_limit: int, room: int, end_ids: Iterable[int]) -> Sampling:
    """Reads `sampling_params` as vLLM names them; ValueError names what this sampler cannot do (it draws from the whole distribution)."""
    unknown = sorted(set(options) - _KNOWN)
    if unknown:
        raise ValueError(f"The sampler does not know {', '.join(unknown)}; leave them out of the sampling parameters.")
    for name, neutral in (("top_p", (1, 1.0)), ("top_k", (-1, 0)), ("repetition_penalty", (1, 1.0))):
        value = options.get(name)
        if value is not None and value not in neutral:
            raise ValueError(
                f"The sampler draws from the whole distribution, and {name} is {value}; set it to {neutral[0]}."
            )
    temperature = float(options.get("temperature", 1.0))
    if not 0 <= temperature < float("inf"):
        raise ValueError(f"temperature is {temperature}; it must be 0 or a positive number.")
    limit = options.get("max_tokens", options.get("max_new_tokens"))
    stop = options.get("stop") or ()
    ends = () if options.get("ignore_eos") else end_ids
    seed = options.get("seed")
    return Sampling(
        temperature=temperature,
        limit=max(1, min(int(default_limit if limit is None else limit), room)),
        stop_ids=frozenset(int(id) for id in (*ends, *(options.get("stop_token_ids") or ()))),
        stop_texts=(stop,) if isinstance(stop, str) else tuple(stop),
        seed=None if seed is None else int(seed),
    )


def draw(logits: torch.Tensor, temperatures: torch.Tensor, uniforms: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """One token a row by inverse distribution: logits [B, V], temperatures [B], uniforms [B] in [0, 1) → ids [B], logprobs [B].

    A logprob is log softmax(logits / temperature), as vLLM's `processed_logprobs`; with temperature 0, of the logits.
    """
    greedy = temperatures == 0
    logprobs = torch.log_softmax(logits.float() / torch.where(greedy, 1.0, temperatures).unsqueeze(1), dim=-1)
    sums = logprobs.double().exp().cumsum(dim=-1)
    drawn = torch.searchsorted(sums, uniforms.double().unsqueeze(1) * sums[:, -1:], right=True).squeeze(1)
    ids = torch.where(greedy, logprobs.argmax(dim=-1), drawn.clamp_(max=logits.shape[1] - 1))
    return ids, logprobs.gather(1, ids.unsqueeze(1)).squeeze(1)
