"""What a trainer trains against what was handed to it: row by row, id by id, mask by mask; and what of it is in the ledger."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Sequence

from ..errors import RunError
from .ledger import Ledger
from .logprobs import largest_difference
from .rows import Row


@dataclass
class _Entry:
    key: str | None
    row: Row
    uses: int = 0


class BatchAccounts:
    """Of one process. Rows of a generation are handed over, compared wherever a batch of them is trained, and written once a step.

    `tolerance` bounds |sampled - recomputed| of rows that the weights of their own step train; None measures only.
    """

    def __init__(self, ledger: Ledger, tolerance: float | None) -> None:
        self.ledger, self._tolerance = ledger, tolerance
        self._entries: dict[tuple[tuple[int, ...], tuple[int, ...]], list[_Entry]] = {}
        self._keys: dict[str, int] = {}
        self._padded = 0
        self._largest: float | None = None

    def hand_over(self, rows: Sequence[tuple[str | None, Row]]) -> None:
        """The rows of one generation by the keys of their rollouts; None for a row that stands for a rollout without one."""
        self._entries.clear()
        for key, row in rows:
            self._entries.setdefault((tuple(row.prompt_ids), tuple(row.response_ids)), []).append(_Entry(key, row))

    def compare(
        self,
        prompts: Sequence[list[int]],
        responses: Sequence[list[int]],
        masks: Sequence[Any],
        logprobs: Sequence[Any] | None,
        version: int,
        carried: Sequence[Any] | None = None,
    ) -> None:
        """A batch as it is trained, tensors without their padding: mask, recomputed logprobs and the sampled ones that the batch carries, or None.

        Raises BATCH_MISMATCH for a row that is not as it was handed over, POLICY_LOGPROB_MISMATCH beyond the tolerance.
        """
        sampled_masks, sampled, recomputed = [], [], []
        for index, (prompt, response, mask) in enumerate(zip(prompts, responses, masks, strict=True)):
            entries = self._entries.get((tuple(prompt), tuple(response)))
            if entries is None:
                raise mismatch(f"row {index} of the batch has {len(prompt)} ids of prompt and {len(response)} of response that no rollout has")
            least = min(each.uses for each in entries)
            unused = [each for each in entries if each.uses == least]
            # Rollouts with the same tokens may have been sampled with other last bits, and come in any order.
            differs = lambda each: _difference(each.row, mask, None if carried is None else carried[index])  # noqa: E731
            entry = next((each for each in unused if differs(each) is None), unused[0])
            if (wrong := differs(entry)) is not None:
                raise mismatch(f"row {index} of the batch {wrong} ({entry.key})")
            entry.uses += 1
            if entry.uses == 1:
                self._count(entry)
            if logprobs is not None and entry.uses == 1 and entry.row.max_version == entry.row.min_version == version:
                sampled_masks.append(mask)
                sampled.append(logprobs[index].new_tensor(entry.row.response_logprobs))
                recomputed.append(logprobs[index])
        difference = largest_difference(sampled_masks, sampled, recomputed)
        if difference is None:
            return
        self._largest = max(difference, self._largest or 0.0)
        if self._tolerance is not None and difference > self._tolerance:
            raise RunError(
                "POLICY_LOGPROB_MISMATCH",
                f"Logprobs of sampled tokens differ from the trainer's by {difference:.3g}, and at most {self._tolerance:g} is allowed: what "
                "sampled were other weights, another temperature, or another precision. Where the precision differs on purpose, raise "
                "logprobCheck.tolerance.",
            )

    def close_step(self, step: int) -> dict[str, float]:
        """Writes what was trained since the last step ended. Returns its metrics: how far sampled and recomputed logprobs differ at most, where that was measured."""
        measured = {} if self._largest is None else {"maxLogprobDifference": self._largest}
        keys = [{"key": key, "rows": 1, "maskTokens": tokens} for key, tokens in self._keys.items()]
        if keys or self._padded:
            self.ledger.write("trained", {"step": step, "keys": keys, "rowsPadded": self._padded, "maxLogprobDifference": self._largest})
        self._keys, self._padded, self._largest = {}, 0, None
        return measured

    def _count(self, entry: _Entry) -> None:
        if entry.key is None:
            self._padded += 1
        else:
            self._keys[entry.key] = sum(entry.row.response_mask)


def _difference(row: Row, mask: Any, carried: Any | None) -> str | None:
    """What a batch has otherwise than the row with its ids; None where they are alike."""
    if [int(each) for each in mask.tolist()] != row.response_mask:
        return f"trains {int(mask.sum())} tokens, and {sum(row.response_mask)} others or fewer were sampled"
    if carried is not None and not carried[mask.bool()].equal(carried.new_tensor(row.response_logprobs)[mask.bool()]):
        return "carries other logprobs than those that were sampled"
    return None


def mismatch(what: str) -> RunError:
    """BATCH_MISMATCH of a batch of which `what` is true."""
    return RunError("BATCH_MISMATCH", f"The trainer's batch is not the rows that it was given: {what}. Install the tested version of the trainer.")
