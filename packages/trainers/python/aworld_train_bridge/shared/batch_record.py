"""What a trainer computed of a batch, number by number: for comparing it with a reference, and for looking at a strange step.

With AWORLD_TRAIN_BATCHES=1 every update leaves a line in `<run path>/ledger/<incarnation>/batches-<pid>.jsonl`:
`{step, loss, rows: [{tokenIds, mask, advantages, logprobs, gradients}]}`. A row is prompt and response without padding, and all of
its arrays have its length: mask is 1 where a token is trained, advantages, logprobs and gradients (the derivative of the loss by each
logprob) are 0 outside the response, and the last two are null where the trainer does not have them. Rows without a trained token are
left out.
"""

from __future__ import annotations

import os
from typing import Any, Sequence

from .ledger import Ledger


def records_batches() -> bool:
    """Whether batches are to be recorded; it costs the trainer a second backward pass through the loss."""
    return os.environ.get("AWORLD_TRAIN_BATCHES") == "1"


def record_batch(
    ledger: Ledger,
    step: int,
    loss: float | None,
    prompts: Sequence[Sequence[int]],
    responses: Sequence[Sequence[int]],
    masks: Sequence[Any],
    advantages: Sequence[Any],
    logprobs: Sequence[Any] | None,
    gradients: Sequence[Any] | None,
) -> None:
    """Writes one update; tensors without their padding, of the length of each response. An advantage may be one number a row."""
    rows = []
    for index, (prompt, response, mask) in enumerate(zip(prompts, responses, masks, strict=True)):
        bits = [int(bit) for bit in mask.tolist()]
        if not any(bits):
            continue
        before = [0.0] * len(prompt)
        each = advantages[index].tolist()
        at = lambda tensors: None if tensors is None else [*before, *(float(value) for value in tensors[index].tolist())]  # noqa: E731
        rows.append(
            {
                "tokenIds": [*prompt, *response],
                "mask": [*(0 for _ in prompt), *bits],
                "advantages": [*before, *(bit * float(each[place] if isinstance(each, list) else each) for place, bit in enumerate(bits))],
                "logprobs": at(logprobs),
                "gradients": at(gradients),
            }
        )
    ledger.write("batches", {"step": step, "loss": loss, "rows": rows})
