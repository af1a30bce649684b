"""TRL's configuration, read by the installed classes: GRPOConfig, and peft's LoraConfig."""

from __future__ import annotations

import dataclasses
import importlib.util
import inspect
import sys
import warnings
from typing import Any, Iterable, Mapping

from ..shared.module import Problem, unknown

TESTED = "1.16.0"

_OURS = {
    "output_dir": "checkpoints stand in the folder of the run",
    "overwrite_output_dir": "a run resumes, or is another run",
    "resume_from_checkpoint": "a run resumes from its last checkpoint by itself",
    "hub_model_id": "nothing leaves the run; push what `export` writes",
    "push_to_hub": "nothing leaves the run; push what `export` writes",
    "log_completions_hub_repo": "nothing leaves the run",
    "use_transformers_continuous_batching": "rollouts are sampled by the bridge, in batches too",
    "mask_truncated_completions": "say what becomes of a cut rollout in incompleteEpisodes",
    "num_generations_eval": "say how often a task is evaluated in evaluation.samplesPerPrompt",
    "generation_kwargs": "tokens are drawn from the whole distribution, whose logprobs are trained",
    "vllm_structured_outputs_regex": "tokens are drawn from the whole distribution, whose logprobs are trained",
}
"""Keys that the run decides, with the reason or what to write instead."""

_WHOLE_DISTRIBUTION = {"top_p": (1, 1.0, None), "top_k": (0, -1, None), "min_p": (0, 0.0, None), "repetition_penalty": (1, 1.0, None)}


def check(configuration: Mapping[str, Any], lora: Mapping[str, Any] | None, names: Iterable[str] = ()) -> list[Problem]:
    """What the installed classes do not take, and what the run decides itself. `names` may be meant by an unknown key too."""
    from trl import GRPOConfig

    fields = {field.name for field in dataclasses.fields(GRPOConfig) if field.init}
    problems = [unknown(key, {*fields, *names}, "field of GRPOConfig") for key in configuration if key not in fields]
    problems += [Problem(f"{key} is not yours to set: {_OURS[key]}.", key) for key in configuration if key in _OURS]
    for key, neutral in _WHOLE_DISTRIBUTION.items():
        if configuration.get(key) not in neutral:
            problems.append(Problem(f"{key} is {configuration[key]}, and tokens are drawn from the whole distribution, whose logprobs are trained; leave it out.", key))
    if configuration.get("use_vllm") and importlib.util.find_spec("vllm") is None:
        problems.append(Problem(_without_vllm(), "use_vllm"))
    if lora is not None:
        from peft import LoraConfig

        known = set(inspect.signature(LoraConfig).parameters)
        problems += [unknown(key, known, "field of peft's LoraConfig", "lora.") for key in lora if key not in known]
    return problems


def _without_vllm() -> str:
    own = f'uv venv vllm && uv pip install --python vllm/bin/python "trl[vllm]=={TESTED}" peft aiohttp'
    return (
        f"use_vllm is true, and {sys.executable} has no vllm, which `setup trl` leaves out: it brings a torch of its own. Where a GPU is, make an environment with both ({own}) "
        "and name its python in AWORLD_TRAIN_PYTHON; else leave use_vllm out, so that the model that is trained samples."
    )


def read(configuration: Mapping[str, Any], lora: Mapping[str, Any] | None, output: str) -> tuple[Any, Any, list[str]]:
    """GRPOConfig, LoraConfig or None, and sentences about what was filled in. Raises ValueError as the classes do."""
    import torch
    from trl import GRPOConfig

    filled: dict[str, Any] = {"report_to": "none", "logging_steps": 1, "log_level": "warning", "disable_tqdm": True}
    notes = []
    if not torch.cuda.is_available() and "use_cpu" not in configuration:
        filled["use_cpu"] = True
        notes.append("use_cpu = true: this machine has no GPU that torch can use")
    if (configuration.get("use_cpu") or filled.get("use_cpu")) and "bf16" not in configuration and "fp16" not in configuration:
        filled["bf16"] = False
        notes.append("bf16 = false: a processor trains in float32")
    if configuration.get("logging_steps") not in (None, 1):
        notes.append("logging_steps = 1: every step is followed")
    # Keys that every start decides stand behind those of the user.
    arguments = {**filled, **configuration, "logging_steps": 1, "output_dir": output, "do_train": True}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        config = GRPOConfig(**arguments)
    adapter = None
    if lora is not None:
        from peft import LoraConfig

        adapter = LoraConfig(**{"task_type": "CAUSAL_LM", **lora})
    return config, adapter, notes


def is_exact(config: Any) -> bool:
    """Whether sampler and trainer round alike: one model in float32."""
    return not (config.use_vllm or config.bf16 or config.fp16)
