"""What verl 0.9 trained on, counted on verl's own batch; for CPU and GPUs alike. No file of verl is changed.

Around `PPOTrainer._update_actor` one line a batch is written: `{step, keys: [{key, rows, maskTokens}], rowsPadded,
maxLogprobDifference}`, the last being the largest |rollout - actor| logprob of a token with mask 1 in rows that the newest
weights sampled, or null where there are none, or verl did not compute the actor's (`rollout_correction.bypass_mode`).
"""

import functools
import os
from collections.abc import Mapping, Sequence
from typing import Any

from aworld_train_bridge.shared.batch_record import record_batch, records_batches
from aworld_train_bridge.shared.keys import to_key
from aworld_train_bridge.shared.ledger import Ledger
from aworld_train_bridge.shared.logprobs import largest_difference

KEY_FIELD = "aworld_train_key"


def install_batch_ledger() -> None:
    """Puts the ledger around the trainer's update in this process; a second call does nothing."""
    from aworld_train_bridge.shared.ledger import ledger_of_environment
    from verl.trainer.ppo.v1.trainer_base import PPOTrainer

    if hasattr(PPOTrainer._update_actor, "__wrapped__"):
        return
    ledger = ledger_of_environment()
    update = PPOTrainer._update_actor

    @functools.wraps(update)
    def update_and_record(self: Any, batch: Any, metrics: dict[str, Any]) -> Any:
        line = _line(batch, self.global_steps, _actor_is_computed(self.config))
        updated = update(self, batch, metrics)
        if line["maxLogprobDifference"] is not None:
            metrics["maxLogprobDifference"] = line["maxLogprobDifference"]
        if records_batches():
            _record(ledger, batch, self.global_steps, metrics.get("actor/pg_loss"))
        ledger.write("trained", line)
        return updated

    PPOTrainer._update_actor = update_and_record


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
        columns = [masks, list(data["rollout_log_probs"].unbind()), list(data["old_log_probs"].unbind())]
        largest_difference(*columns)  # whatever sampled a row, its logprobs must be finite
        newest = [tag.get("min_global_steps") == tag.get("max_global_steps") == step - 1 for tag in batch.tags]
        difference = largest_difference(*([row for row, chosen in zip(column, newest, strict=True) if chosen] for column in columns))
    extra = [getattr(fields, "data", fields) for fields in data["extra_fields"]]
    counted, padded = count_rows(batch.keys, batch.tags, [int(mask.sum()) for mask in masks], extra)
    return {"step": int(step), "keys": counted, "rowsPadded": padded, "maxLogprobDifference": difference}


def _record(ledger: Ledger, batch: Any, step: int, loss: float | None) -> None:
    """Writes the batch as verl has trained it; `loss` is the mean over its updates. The derivatives stay with the workers that computed them."""
    import transfer_queue

    fields = ["input_ids", "responses", "response_mask", "advantages", "old_log_probs"]
    data = transfer_queue.kv_batch_get(keys=batch.keys, partition_id=batch.partition_id, select_fields=fields)
    rows = {name: list(data[name].unbind()) for name in fields}
    responses = [row.tolist() for row in rows["responses"]]
    prompts = [ids.tolist()[: len(ids) - len(response)] for ids, response in zip(rows["input_ids"], responses, strict=True)]
    masks, advantages, logprobs = (rows[name] for name in ("response_mask", "advantages", "old_log_probs"))
    record_batch(ledger, int(step), None if loss is None else float(loss), prompts, responses, masks, advantages, logprobs, None)


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


def _composed_key(key: str, tag: Mapping[str, Any]) -> str:
    uid, sample, _ = key.rsplit("_", 2)
    run, incarnation = (os.environ.get(f"AWORLD_TRAIN_{name}", "") for name in ("RUN", "INCARNATION"))
    return to_key(run, incarnation, "train", tag.get("global_steps", ""), uid, sample)
