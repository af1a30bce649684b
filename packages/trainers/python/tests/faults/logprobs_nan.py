"""A fault for verl: its actor computes no number any more, as after an update that diverged.

Named in VERL_USE_EXTERNAL_MODULES, it stands around the trainer's comparison of logprobs in the process that has the trainer.
"""

import functools
import math
from typing import Any

from aworld_train_bridge.verl import batch_ledger

_install = batch_ledger.install_batch_ledger


def install_with_fault() -> None:
    import transfer_queue
    from verl.trainer.ppo.v1.trainer_base import PPOTrainer
    from verl.utils.tensordict_utils import list_of_dict_to_tensordict

    _install()
    compare = PPOTrainer._compute_old_log_prob

    @functools.wraps(compare)
    def compare_and_diverge(self: Any, batch: Any, metrics: dict[str, Any]) -> Any:
        compared = compare(self, batch, metrics)
        data = transfer_queue.kv_batch_get(keys=batch.keys, partition_id=batch.partition_id, select_fields=["old_log_probs"])
        diverged = list_of_dict_to_tensordict([{"old_log_probs": row * math.nan} for row in data["old_log_probs"].unbind()])
        transfer_queue.kv_batch_put(keys=batch.keys, partition_id=batch.partition_id, fields=diverged)
        return compared

    PPOTrainer._compute_old_log_prob = compare_and_diverge


batch_ledger.install_batch_ledger = install_with_fault
