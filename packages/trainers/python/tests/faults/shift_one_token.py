"""A fault for verl: one sampled token of the first batch is trained in the place of its neighbour.

Named in VERL_USE_EXTERNAL_MODULES, it stands around the trainer's comparison of logprobs in the process that has the trainer.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

from aworld_train_bridge.verl import batch_ledger

_install = batch_ledger.install_batch_ledger


def install_with_fault() -> None:
    from verl.trainer.ppo.v1.trainer_base import PPOTrainer

    _install()
    compare = PPOTrainer._compute_old_log_prob
    shifted = [False]

    @functools.wraps(compare)
    def shift_and_compare(self: Any, batch: Any, metrics: dict[str, Any]) -> Any:
        if not shifted[0]:
            shifted[0] = _shift_one_token(batch)
        return compare(self, batch, metrics)

    PPOTrainer._compute_old_log_prob = shift_and_compare


batch_ledger.install_batch_ledger = install_with_fault


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
