"""For smoke tests on CPU: the platform that verl 0.9 lacks (`verl.plugin.platform`), with gloo between ranks."""

import contextlib
import types
from collections.abc import Iterator
from typing import Any

import torch
from verl.plugin.platform.platform_base import PlatformBase
from verl.plugin.platform.platform_manager import PlatformRegistry, set_platform

_DOES_NOTHING = (
    "set_device",
    "synchronize",
    "empty_cache",
    "ipc_collect",
    "reset_peak_memory_stats",
    "reset_max_memory_allocated",
)
_IS_ZERO = ("memory_allocated", "memory_reserved", "max_memory_allocated", "max_memory_reserved")


class _CpuDeviceModule(types.ModuleType):
    """`torch.cpu`, with the functions of `torch.cuda` that verl calls on a device module."""

    def __getattr__(self, name: str) -> Any:
        return getattr(torch.cpu, name)


def _device_module() -> types.ModuleType:
    module = _CpuDeviceModule("aworld_train_bridge.smoke.cpu_device")
    functions = {name: lambda *_, **__: None for name in _DOES_NOTHING}
    functions |= {name: lambda *_, **__: 0 for name in _IS_ZERO}
    functions |= {
        "mem_get_info": lambda *_, **__: (1 << 34, 1 << 34),
        "is_available": lambda: True,
        "device_count": lambda: 1,
        "current_device": lambda *_: "cpu",
        "get_device_name": lambda *_: "cpu",
        "manual_seed": torch.manual_seed,
        "manual_seed_all": torch.manual_seed,
        "get_rng_state": lambda *_: torch.get_rng_state(),
        "set_rng_state": lambda state, *_: torch.set_rng_state(state),
    }
    for name, function in functions.items():
        setattr(module, name, function)
    return module


@PlatformRegistry.register(platform="cpu")
class PlatformCPU(PlatformBase):
    """One CPU device a process; Ray's resource `GPU` is a logical one (`ray_init.num_gpus`)."""

    device_name, vendor_name, device_module = "cpu", "cpu", _device_module()

    def is_available(self) -> bool:
        return True

    def current_device(self) -> torch.device:
        return torch.device("cpu")

    def device_count(self) -> int:
        return 1

    def set_device(self, device_index: Any) -> None: ...

    def synchronize(self, device_index: Any = None) -> None: ...

    def manual_seed(self, seed: int) -> None:
        torch.manual_seed(seed)

    def manual_seed_all(self, seed: int) -> None:
        torch.manual_seed(seed)

    def set_allocator_settings(self, settings: str) -> None: ...

    def empty_cache(self) -> None: ...

    def get_device_capability(self, device_index: int = 0) -> tuple[None, None]:
        return None, None

    def communication_backend_name(self) -> str:
        return "gloo"

    def visible_devices_envvar(self) -> str:
        return "CUDA_VISIBLE_DEVICES"

    def ray_resource_name(self) -> str:
        return "GPU"

    def ray_noset_envvars(self) -> list[str]:
        return []

    def is_ipc_supported(self) -> bool:
        return False

    @contextlib.contextmanager
    def nvtx_range(self, msg: str) -> Iterator[None]:
        yield

    def profiler_start(self) -> None: ...

    def profiler_stop(self) -> None: ...

    def cudart(self) -> None:
        return None


def install_platform() -> None:
    """Makes CPU the platform of this process and gloo its backend; verl would compose `cpu:gloo,cpu:gloo`, which torch rejects."""
    import verl.utils.distributed as distributed

    set_platform(PlatformCPU())
    start = distributed.initialize_global_process_group_ray
    if getattr(start, "aworld_train_gloo", False):
        return

    def start_with_gloo(timeout_second: int | None = None, backend: str | None = None) -> Any:
        return start(timeout_second, "gloo")

    start_with_gloo.aworld_train_gloo = True
    distributed.initialize_global_process_group_ray = start_with_gloo
