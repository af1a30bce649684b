"""What verl 0.9 trained on, counted on verl's own batch; for CPU and GPUs alike. No file of verl is changed.

Around `PPOTrainer._update_actor` one line a batch is written: `{step, keys: [{key, rows, maskTokens}], rowsPadded,
maxLogprobDifference}`, the last being the largest |rollout - actor| logprob of a token with mask 1, or null where verl did not
compute the actor's (`rollout_correction.bypass_mode`).
"""

import functools
import math
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

import torch

KEY_FIELD = "aworld_train_key"


def install_batch_ledger() -> None:
    """Puts the ledger around the trainer's methods in this process; a second call does nothing."""
    from verl.trainer.ppo.v1.trainer_base import PPOTrainer

    from aworld_train_bridge.verl.ledger import ledger_of_environment

    if hasattr(PPOTrainer._update_actor, "__wrapped__"):
        return
    ledger = ledger_of_environment()
    update = PPOTrainer._update_actor
    compare = PPOTrainer._compute_old_log_prob
    shifted = [False]

    @functools.wraps(update)
    def update_and_record(self: Any, batch: Any, metrics: dict[str, Any]) -> Any:
        line = _line(batch, self.global_steps, _actor_is_computed(self.config))
        updated = update(self, batch, metrics)
        ledger.write("trained", line)
        return updated

    @functools.wraps(compare)
    def shift_and_compare(self: Any, batch: Any, metrics: dict[str, Any]) -> Any:
        if os.environ.get("AWORLD_TRAIN_SHIFT_TOKEN") == "1" and not shifted[0]:
            shifted[0] = _shift_one_token(batch)
        return compare(self, batch, metrics)

    PPOTrainer._update_actor = update_and_record
    PPOTrainer._compute_old_log_prob = shift_and_compare


def _actor_is_computed(config: Any) -> bool:
    correction = config.algorithm.get("rollout_correction", None)
    return not (correction and correction.get("bypass_mode", False))


def _line(batch: Any, step: int, actor_is_computed: bool) -> dict[str, Any]:
    import transfer_queue

    fields = ["response_mask", "extra_fields", *(["old_log_probs", "rollout_log_probs"] if actor_is_computed else [])]
    data = transfer_queue.kv_batch_get(keys=batch.keys, partition_id=batch.partition_id, select_fields=fields)
    masks = list(data["response_mask"].unbind())
    difference = None
    if "old_log_probs" in data and "rollout_log_probs" in data:
        difference = largest_difference(masks, list(data["rollout_log_probs"].unbind()), list(data["old_log_probs"].unbind()))
    extra = [getattr(fields, "data", fields) for fields in data["extra_fields"]]
    counted, padded = count_rows(batch.keys, batch.tags, [int(mask.sum()) for mask in masks], extra)
    return {"step": int(step), "keys": counted, "rowsPadded": padded, "maxLogprobDifference": difference}


def count_rows(
    keys: Sequence[str], tags: Sequence[Mapping[str, Any]], mask_tokens: Sequence[int], extra_fields: Sequence[Any]
) -> tuple[list[dict[str, Any]], int]:
    """Rows and mask-1 tokens of each rollout, and the number of rows that verl added to fill the batch."""
    counted: dict[str, dict[str, Any]] = {}
    padded = 0
    for key, tag, tokens, extra in zip(keys, tags, mask_tokens, extra_fields, strict=True):
        if tag.get("is_padding", False):
            padded += 1
            continue
        name = (extra or {}).get(KEY_FIELD) or _composed_key(key, tag)
        entry = counted.setdefault(name, {"key": name, "rows": 0, "maskTokens": 0})
        entry["rows"] += 1
        entry["maskTokens"] += tokens
    return list(counted.values()), padded


def largest_difference(
    masks: Sequence[torch.Tensor], rollout: Sequence[torch.Tensor], actor: Sequence[torch.Tensor]
) -> float | None:
    """Largest |rollout - actor| logprob over tokens with mask 1; null without one; RuntimeError where one is not finite."""
    differences = [(a - b)[mask.bool()].abs().max() for mask, a, b in zip(masks, rollout, actor, strict=True) if mask.any()]
    if not differences:
        return None
    largest = float(torch.stack(differences).max())
    if not math.isfinite(largest):
        raise RuntimeError(
            "[LOGPROBS_NOT_FINITE] The actor's logprob of a sampled token is not a finite number: an update diverged. "
            "Resume from an earlier checkpoint with a lower learning rate."
        )
    return largest


def _composed_key(key: str, tag: Mapping[str, Any]) -> str:
    uid, sample, _ = key.rsplit("_", 2)
    run, incarnation = (os.environ.get(f"AWORLD_TRAIN_{name}", "") for name in ("RUN", "INCARNATION"))
    parts = (run, incarnation, "train", tag.get("global_steps", ""), uid, sample)
    return "/".join(quote(str(part), safe="-_.!~*'()") for part in parts)


def _shift_one_token(batch: Any) -> bool:
    """Swaps two sampled neighbours of one row and leaves their logprobs; whether there was such a row."""
    import transfer_queue
    from verl.utils.tensordict_utils import list_of_dict_to_tensordict

    fields = ["responses", "response_mask", "input_ids"]
    data = transfer_queue.kv_batch_get(keys=batch.keys, partition_id=batch.partition_id, select_fields=fields)
    columns = [list(data[name].unbind()) for name in fields]
    for key, responses, mask, ids in zip(batch.keys, *columns, strict=True):
        if place := swappable(responses.tolist(), mask.tolist()):
            responses, ids = responses.clone(), ids.clone()
            for tensor, at in ((responses, place), (ids, len(ids) - len(responses) + place)):
                tensor[at - 1 : at + 1] = tensor[at - 1 : at + 1].flip(0)
            changed = list_of_dict_to_tensordict([{"responses": responses, "input_ids": ids}])
            transfer_queue.kv_batch_put(keys=[key], partition_id=batch.partition_id, fields=changed)
            return True
    return False


def swappable(ids: Sequence[int], mask: Sequence[int]) -> int | None:
    """Place of a sampled token that differs from the sampled one before it."""
    pairs: Callable[[int], bool] = lambda i: bool(mask[i - 1] and mask[i]) and ids[i - 1] != ids[i]  # noqa: E731
    return next((i for i in range(1, len(ids)) if pairs(i)), None)
