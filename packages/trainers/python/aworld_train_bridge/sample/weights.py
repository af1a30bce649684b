"""Weights sent by name are loaded into a Hugging Face model, and every one is accounted for."""

from collections.abc import Mapping

import torch


@torch.no_grad()
def load_weights(model: torch.nn.Module, sent: Mapping[str, torch.Tensor]) -> int:
    """Copies `sent` into the model and returns how many parameters were set; nothing is changed where it raises ValueError.

    Every parameter must arrive once, with its shape and finite values. Tied parameters may arrive under any of their names,
    or under several with the same values.
    """
    own = dict(model.named_parameters(remove_duplicate=False))
    unknown = sorted(name for name in sent if name not in own)
    if unknown:
        raise ValueError(f"The model has no parameter {_names(unknown)}; was another model trained than the one sampled?")
    chosen: dict[int, tuple[str, torch.Tensor]] = {}
    for name, tensor in sent.items():
        parameter = own[name]
        if tensor.shape != parameter.shape:
            raise ValueError(f"Weight {name} arrived as {tuple(tensor.shape)}; the model has {tuple(parameter.shape)}.")
        if not torch.isfinite(tensor).all():
            raise ValueError(f"Weight {name} is not finite: the update diverged; lower the learning rate.")
        other = chosen.setdefault(id(parameter), (name, tensor))
        if other[0] != name and not torch.equal(other[1], tensor):
            raise ValueError(f"Weights {other[0]} and {name} are tied in the model and arrived with different values.")
    missing = sorted(name for name, parameter in model.named_parameters() if id(parameter) not in chosen)
    if missing:
        raise ValueError(f"Weights did not arrive: {_names(missing)}.")
    parameters = {id(parameter): parameter for parameter in own.values()}
    for key, (_, tensor) in chosen.items():
        parameters[key].copy_(tensor)
    return len(chosen)


def _names(names: list[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
