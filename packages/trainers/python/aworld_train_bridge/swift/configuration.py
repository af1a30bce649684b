"""The arguments of `swift rlhf --rlhf_type grpo`, read by the installed classes."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
from pathlib import Path
from typing import Any, Iterable, Mapping

from ..shared.module import Problem, unknown

TESTED = "4.6.0"

TEMPLATE = "aworld_train"
"""The template that adds nothing: a row is one message of ids, its prompt included."""

_RUN = "a run has a folder of its own, and goes on from its last checkpoint by itself"
_DATA = "tasks are trainDataset and testDataset, or data.trainFiles and data.testFiles"
_REWARD = "rollouts are scored by rewardFunc, or reward.path"
_SERVER = "the model that is trained samples; servers of `swift rollout` are not supported"
_TURNS = "the agent takes the turns"
_WHOLE = "tokens are drawn from the whole distribution, whose logprobs are trained"
_ONE = "rows are compared one by one as they are trained, each by itself, in one process"
_HUB = "nothing leaves the run; push what `export` writes"
_PROMPT = "prompts are rendered by the model's own chat template as the agent sends them"
_CUT = "say what becomes of a long or cut rollout in limits and incompleteEpisodes"
_TEACHER = "teachers are not supported with rollouts of an agent"

_OURS: dict[str, str] = {
    **dict.fromkeys(("output_dir", "add_version", "resume_from_checkpoint", "resume_only_model", "load_args", "create_checkpoint_symlink"), _RUN),
    **dict.fromkeys(("dataset", "val_dataset", "eval_dataset", "cached_dataset", "cached_val_dataset", "split_dataset_ratio", "streaming"), _DATA),
    **dict.fromkeys(("reward_funcs", "reward_model", "reward_weights", "reward_model_plugin", "use_gym_env"), _REWARD),
    **dict.fromkeys(("vllm_mode", "vllm_server_host", "vllm_server_base_url", "vllm_server_port", "async_generate"), _SERVER),
    **dict.fromkeys(("multi_turn_scheduler", "gym_env", "dynamic_sample", "max_turns", "completion_length_limit_scope"), _TURNS),
    **dict.fromkeys(("stop_words", "structured_outputs_regex"), _WHOLE),
    **dict.fromkeys(("padding_free", "packing", "sequence_parallel_size", "deepspeed", "fsdp", "use_ray", "padding_side", "external_plugins"), _ONE),
    **dict.fromkeys(("push_to_hub", "hub_model_id", "hub_token", "use_hf"), _HUB),
    **dict.fromkeys(("template", "system", "use_chat_template", "template_backend", "agent_template", "loss_scale", "enable_thinking"), _PROMPT),
    **dict.fromkeys(("overlong_filter", "truncation_strategy", "max_length"), _CUT),
    **dict.fromkeys(("teacher_model", "teacher_model_server", "advantage_reweight", "chord_sft_dataset"), _TEACHER),
    "num_generations_eval": "say how often a task is evaluated in evaluation.samplesPerPrompt",
}
"""Arguments that the run decides, with the reason or what to write instead."""

_NEUTRAL: dict[str, tuple[tuple[Any, ...], str]] = {
    "rlhf_type": (("grpo",), "the bridge has rollouts for grpo alone"),
    "use_vllm": ((False,), _SERVER),
    "scale_rewards": (("group", "batch", "none"), "there is one reward"),
    "loss_type": (("grpo", "bnpo", "dr_grpo", "dapo", "cispo", "sapo"), "the others group rows by their place, of which some may be empty"),
    "top_p": ((1, 1.0), _WHOLE),
    "top_k": ((0, -1, 50), _WHOLE),
    "min_p": ((0, 0.0), _WHOLE),
    "repetition_penalty": ((1, 1.0), _WHOLE),
}
"""Arguments that have to be one of these, or left out, with the reason."""


def check(configuration: Mapping[str, Any], names: Iterable[str] = ()) -> list[Problem]:
    """What the installed classes do not know, and what the run decides itself. `names` may be meant by an unknown key too."""
    from swift.arguments import RLHFArguments

    fields = {field.name for field in dataclasses.fields(RLHFArguments) if field.init}
    problems = [unknown(key, {*fields, *names}, "argument of swift rlhf") for key in configuration if key not in fields]
    problems += [Problem(f"{key} is not yours to set: {_OURS[key]}.", key) for key in configuration if key in _OURS]
    for key, (neutral, reason) in _NEUTRAL.items():
        value = configuration.get(key)
        if value is not None and value not in neutral:
            problems.append(Problem(f"{key} is {value!r}, and {reason}; leave it out.", key))
    return problems


def read(configuration: Mapping[str, Any], model: str, output: str, tasks: Mapping[str, str]) -> tuple[Any, list[str]]:
    """RLHFArguments as `swift rlhf` makes them, and sentences about what was filled in. Raises ValueError as the classes do."""
    import torch
    from swift.arguments import RLHFArguments
    from swift.utils import parse_args

    # With `check_model` every start asks modelscope.cn for the latest model and tells it how the trainer is configured; without a network it waits 22 s.
    filled: dict[str, Any] = {"report_to": "none", "disable_tqdm": True, "dataloader_num_workers": 0, "check_model": False}
    notes = []
    if "model_type" not in configuration and (kind := _model_type(model)):
        filled["model_type"] = kind
    if "tuner_type" not in configuration and not any(key.startswith("lora_") for key in configuration):
        filled["tuner_type"] = "full"
        notes.append("tuner_type = full: every weight is trained; ms-swift's own default is lora")
    elif configuration.get("tuner_type") != "full" and "lora_dropout" not in configuration:
        filled["lora_dropout"] = 0.0
        notes.append("lora_dropout = 0: what samples has none, and would not be what is trained; ms-swift's own default is 0.05")
    if configuration.get("use_cpu") or not torch.cuda.is_available():
        if "use_cpu" not in configuration:
            filled["use_cpu"] = True
            notes.append("use_cpu = true: this machine has no GPU that torch can use")
        if not {"torch_dtype", "bf16", "fp16"} & set(configuration):
            filled |= {"torch_dtype": "float32", "bf16": False, "fp16": False}
            notes.append("torch_dtype = float32: a processor trains in float32")
    elif configuration.get("torch_dtype") == "float32" and not {"bf16", "fp16"} & set(configuration):
        filled |= {"bf16": False, "fp16": False}
        notes.append("fp16 = false: ms-swift would compute a model of float32 in fp16")
    if configuration.get("logging_steps") not in (None, 1):
        notes.append("logging_steps = 1: every step is followed")
    generations = configuration.get("num_generations", 8)
    # Keys that every start decides stand behind those of the user. A row has its prompt and never comes near swift's lengths.
    arguments = {
        **filled,
        **configuration,
        "rlhf_type": "grpo",
        "model": model,
        "template": TEMPLATE,
        "dataset": [tasks["train"]],
        **({"val_dataset": [tasks["test"]]} if tasks.get("test") else {}),
        "reward_funcs": [TEMPLATE],
        "num_generations_eval": generations,
        "per_device_eval_batch_size": generations,
        "logging_steps": 1,
        "output_dir": output,
        "add_version": False,
        "split_dataset_ratio": 0,
        "use_vllm": False,
        "top_p": 1.0,
        "top_k": -1,
    }
    register()
    errors = io.StringIO()
    try:
        with contextlib.redirect_stderr(errors):
            parsed, _ = parse_args(RLHFArguments, _to_argv(arguments))
    except SystemExit as error:  # what argparse ends with
        raise ValueError(errors.getvalue().strip().split("\n")[-1].split("error: ")[-1]) from error
    except AssertionError as error:
        raise ValueError(str(error) or "an argument is refused by swift.arguments") from error
    return parsed, notes


def register() -> None:
    """Puts the template and the reward of the bridge into swift's tables."""
    from swift.rewards import ORM, orms
    from swift.template import TemplateMeta, register_template

    class RowReward(ORM):
        """The reward that came with each row; None is left out of the mean of its group."""

        def __call__(self, completions: list[Any], rollout_infos: list[dict[str, Any]], **_: Any) -> list[float | None]:
            return [each["reward"] for each in rollout_infos]

    orms[TEMPLATE] = RowReward
    register_template(TemplateMeta(TEMPLATE, prefix=[], prompt=[], chat_sep=None, suffix=[]), exist_ok=True)


def is_exact(arguments: Any) -> bool:
    """Whether sampler and trainer compute alike: one model in float32, without dropout."""
    import torch

    dropped = arguments.tuner_type != "full" and arguments.lora_dropout > 0
    return not dropped and arguments.torch_dtype == torch.float32 and not (arguments.bf16 or arguments.fp16)


def _model_type(model: str) -> str | None:
    """The model's own type, where swift has one of that name: several of swift's types may fit one architecture."""
    from swift.model import MODEL_MAPPING

    described = Path(model) / "config.json"
    kind = json.loads(described.read_text(encoding="utf8")).get("model_type") if described.is_file() else None
    return kind if kind in MODEL_MAPPING else None


def _to_argv(arguments: Mapping[str, Any]) -> list[str]:
    """A command line; what is null is left to swift."""
    argv: list[str] = []
    for key, value in arguments.items():
        if value is None:
            continue
        values = value if isinstance(value, (list, tuple)) else [value]
        argv += [f"--{key}", *(each if isinstance(each, str) else json.dumps(each) for each in values)]
    return argv
