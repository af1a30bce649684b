"""The names of verl that are not its public interface and that the bridge relies on, in one place (verl 0.9.1).

``changed()`` compares them with the installed verl: a release that renamed one, or gave it other parameters, is found before
anything is started, and not in the middle of a step.
"""

from __future__ import annotations

import importlib
import inspect
from typing import Any

_TRAINER = "verl.trainer.ppo.v1.trainer_base:PPOTrainer"
_BUFFER = "verl.trainer.ppo.v1.replay_buffer:ReplayBuffer"
_LOOP = "verl.experimental.agent_loop.agent_loop"

NAMES: dict[str, tuple[str, ...] | None] = {
    # The batch ledger stands around this one (verl/batch_ledger.py).
    f"{_TRAINER}._update_actor": ("self", "batch", "metrics"),
    # The replay buffer overrides these, and asks the trainer for its filter (verl/replay_buffer.py).
    f"{_TRAINER}._resolve_filter_groups_metric": ("self",),
    f"{_BUFFER}.sample": ("self", "global_steps", "partition_id", "batch_size"),
    f"{_BUFFER}._wait_for_next_poll": ("self", "partition_id", "last_debug_time"),
    f"{_BUFFER}._terminal_eviction_reasons": ("self", "global_steps", "partition_id"),
    f"{_BUFFER}._evict_terminal_groups": ("self", "global_steps", "partition_id", "eviction_reasons"),
    "verl.trainer.ppo.v1.replay_buffer:ReplayBufferAsync": ("trainer_mode", "sampler_kwargs", "poll_interval", "refill_fn", "filter_groups_metric"),
    # The agent loop is made and asked by verl's workers (verl/agent_loop.py, verl/model_calls.py).
    f"{_LOOP}:AgentLoopBase": None,
    f"{_LOOP}:AgentLoopOutput": (
        "prompt_ids", "response_ids", "response_mask", "response_logprobs", "reward_score", "num_turns", "metrics", "extra_fields",
    ),
    f"{_LOOP}:AgentLoopMetrics": ("num_preempted",),
    "verl.workers.rollout.llm_server:LLMServerClient.generate": ("self", "request_id", "prompt_ids", "sampling_params"),
    # The replica and the platform on CPU (smoke/).
    "verl.workers.rollout.base:_ROLLOUT_REGISTRY": None,
    "verl.workers.rollout.replica:RolloutReplicaRegistry.register": ("name", "loader"),
    "verl.utils.distributed:initialize_global_process_group_ray": ("timeout_second", "backend"),
    "verl.plugin.platform.platform_manager:set_platform": None,
    # Composition and export (verl/resolve_config.py, verl/export_model.py).
    "verl.utils.config:omega_conf_to_dataclass": None,
    "verl.utils.config:validate_config": ("config", "use_reference_policy", "use_critic"),
    "verl.model_merger.fsdp_model_merger:FSDPModelMerger": None,
}
"""By ``module:attribute`` the first parameters that are given to it; None for what is only named."""


def changed() -> list[str]:
    """A sentence for each name that the installed verl does not have, or has with other parameters."""
    return [problem for name, parameters in NAMES.items() if (problem := _compare(name, parameters))]


def _compare(name: str, parameters: tuple[str, ...] | None) -> str | None:
    module, _, path = name.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        return f"verl has no {name}, which the bridge relies on: {error}."
    if parameters is None:
        return None
    present = tuple(inspect.signature(found).parameters)
    if all(each in present for each in parameters):
        return None
    return f"{name} of verl takes {', '.join(present)}, and the bridge gives it {', '.join(parameters)}."
