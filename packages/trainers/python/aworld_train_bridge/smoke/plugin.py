"""For smoke tests on CPU: makes the platform and the rollout engine `cpu_hf` known to verl 0.9 in this process."""


def install() -> None:
    """Called in every verl process where AWORLD_TRAIN_SMOKE is 1, before verl looks for a device or an engine."""
    from verl.workers.rollout.base import _ROLLOUT_REGISTRY
    from verl.workers.rollout.replica import RolloutReplicaRegistry

    from aworld_train_bridge.smoke.platform import install_platform

    install_platform()
    RolloutReplicaRegistry.register("cpu_hf", _replica)
    # There is no public function for the trainer's side.
    _ROLLOUT_REGISTRY[("cpu_hf", "async")] = "aworld_train_bridge.smoke.rollout.CpuAdapter"


def _replica() -> type:
    from aworld_train_bridge.smoke.rollout import CpuReplica

    return CpuReplica
