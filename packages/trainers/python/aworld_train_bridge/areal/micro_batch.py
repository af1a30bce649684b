"""The rows of a micro-batch as AReaL computes its loss: packed one behind the other, each tensor one place before the token it is of."""

from __future__ import annotations

from typing import Any, Mapping

import torch

from ..shared.batch_accounts import BatchAccounts
from ..shared.batch_record import record_batch


class MicroBatch:
    """Rows with a trained token; `versions` is -1 in their prompts (`workflow.to_trajectory`)."""

    def __init__(self, inputs: Mapping[str, Any]) -> None:
        ids, versions, loss_mask = (inputs[name].reshape(-1) for name in ("input_ids", "versions", "loss_mask"))
        bounds = inputs["cu_seqlens"].tolist()
        self._places = []
        self.prompts: list[list[int]] = []
        self.responses: list[list[int]] = []
        for start, end in zip(bounds[:-1], bounds[1:], strict=True):
            if loss_mask[start:end].any():
                prompt = start + int((versions[start:end] < 0).sum())
                self._places.append(slice(prompt - 1, end - 1))
                self.prompts.append(ids[start:prompt].tolist())
                self.responses.append(ids[prompt:end].tolist())
        self.masks = self.of(loss_mask)
        self.advantages = self.of(inputs["advantages"])

    def of(self, tensor: torch.Tensor) -> list[torch.Tensor]:
        """What a tensor of the micro-batch has for each response."""
        return [tensor.detach().reshape(-1)[place] for place in self._places]


class UpdateRecord:
    """The micro-batches of one update, for `record_batch`: AReaL weighs the mean of each by its trained tokens."""

    def __init__(self) -> None:
        self._parts: list[tuple[MicroBatch, float, list[torch.Tensor], list[torch.Tensor]]] = []

    def add(self, part: MicroBatch, loss: torch.Tensor, logprobs: torch.Tensor) -> None:
        gradients = torch.autograd.grad(loss, logprobs, retain_graph=True)[0]
        self._parts.append((part, float(loss.detach()), part.of(logprobs), part.of(gradients)))

    def write(self, accounts: BatchAccounts, step: int) -> None:
        weights = [sum(float(mask.sum()) for mask in part.masks) for part, *_ in self._parts]
        total = sum(weights)
        shares = [weight / total for weight in weights]
        parts = [part for part, *_ in self._parts]
        flat = lambda lists: [each for list in lists for each in list]  # noqa: E731
        record_batch(
            accounts.ledger,
            step,
            sum(share * loss for share, (_, loss, _, _) in zip(shares, self._parts, strict=True)),
            flat(part.prompts for part in parts),
            flat(part.responses for part in parts),
            flat(part.masks for part in parts),
            flat(part.advantages for part in parts),
            flat(logprobs for _, _, logprobs, _ in self._parts),
            flat([gradient * share for gradient in gradients] for share, (_, _, _, gradients) in zip(shares, self._parts, strict=True)),
        )
