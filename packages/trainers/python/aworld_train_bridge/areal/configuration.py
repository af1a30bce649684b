"""AReaL's configuration, read by its own dataclasses: what a run fills in, and what it refuses."""

from __future__ import annotations

import dataclasses
from typing import Any, Mapping

from ..shared.module import Problem, unknown

TESTED = "1.0.4"

_OURS = {
    "recover.mode": "a run resumes from its last checkpoint by itself",
    "recover.fileroot": "checkpoints stand in the folder of the run",
    "cluster.fileroot": "everything stands in the folder of the run",
    "cluster.name_resolve": "each start has its own",
    "train_dataset.path": "tasks are those of data.trainFiles",
    "valid_dataset.path": "tasks are those of data.testFiles",
    "actor.path": "write model.path",
    "tokenizer_path": "it is that of model.path",
    "actor.enable_tree_training": "rows are compared with what is trained, one by one",
    "actor.mask_no_eos_with_zero": "say what becomes of a cut rollout in incompleteEpisodes",
}
"""Keys that the run decides, with the reason or what to write instead."""

_WHOLE_DISTRIBUTION = {"top_p": 1.0, "top_k": None, "min_new_tokens": 0, "greedy": False, "ignore_eos": False, "frequency_penalty": 0.0, "use_beam_search": False}
"""Fields of gconfig whose other values sample from something else than what is trained."""


def filled(written: Mapping[str, Any], *, on_cpu: bool) -> tuple[dict[str, Any], list[str]]:
    """`written` with what AReaL requires and a run knows, by AReaL's own interpolations; sentences about what is not obvious."""
    tree: dict[str, Any] = _copy(written)
    notes: list[str] = []

    def fill(key: str, value: Any, why: str | None = None) -> None:
        *sections, last = key.split(".")
        node = tree
        for section in sections:
            if node.get(section) is None:
                node[section] = {}
            node = node[section]
        if last not in node:
            node[last] = value
            if why:
                notes.append(f"{key} = {value}: {why}")

    fill("experiment_name", "aworld-train")
    fill("trial_name", "run")
    for section in ("actor", "ref", "critic", "rollout", "saver", "evaluator", "recover", "stats_logger"):
        if section not in ("ref", "critic") or tree.get(section) is not None:
            fill(f"{section}.experiment_name", "${experiment_name}")
            fill(f"{section}.trial_name", "${trial_name}")
    for section in ("rollout", "saver", "evaluator", "recover", "stats_logger"):
        fill(f"{section}.fileroot", "${cluster.fileroot}")
    fill("actor.backend", "fsdp:d1")
    fill("rollout.backend", "vllm:d1")
    fill("rollout.tokenizer_path", "${tokenizer_path}")
    fill("rollout.consumer_batch_size", "${train_dataset.batch_size}")
    fill("actor.optimizer", {})
    fill("actor.temperature", "${gconfig.temperature}")
    fill("train_dataset.type", "rl")
    if not _at(tree, "ref"):
        fill("actor.kl_ctl", 0.0, "there is no reference model")
    if not _at(tree, "actor.reward_norm") and not _at(tree, "actor.adv_norm"):
        group = {"mean_level": "group", "std_level": "group", "group_size": "${gconfig.n_samples}"}
        fill("actor.reward_norm", group, "advantages are relative to the group of a task")
    if on_cpu:
        reason = "this machine has no GPU that torch can use"
        for section in ("actor", *(("ref",) if tree.get("ref") is not None else ())):
            fill(f"{section}.attn_impl", "sdpa", reason)
            fill(f"{section}.dtype", "float32", reason)
        fill("actor.weight_update_mode", "disk", reason)
    return tree, notes


def read(written: Mapping[str, Any], *, on_cpu: bool, run: Mapping[str, Any] = {}) -> tuple[Any, list[str]]:  # noqa: B006
    """AReaL's PPOConfig and the notes of `filled`; `run` has the keys that every start decides. Raises ValueError as AReaL's classes do."""
    from areal.api.cli_args import PPOConfig, to_structured_cfg
    from omegaconf import OmegaConf

    tree, notes = filled(written, on_cpu=on_cpu)
    config = OmegaConf.create(tree)
    defaults = {"train_dataset.path": "tasks", "train_dataset.scheduling_spec": None, "cluster.fileroot": ".", **run}
    for key, value in defaults.items():
        OmegaConf.update(config, key, value, force_add=True)
    return OmegaConf.to_object(to_structured_cfg(config, PPOConfig)), notes


def check(written: Mapping[str, Any], *, on_cpu: bool) -> tuple[list[Problem], list[str], Any]:
    """What AReaL's classes do not take and what the run refuses; notes; and the configuration where there is no problem."""
    from omegaconf.errors import ConfigKeyError, OmegaConfBaseException

    problems = [Problem(f"{key} is not yours to set: {why}.", key) for key, why in _OURS.items() if _at(written, key) is not None]
    if problems:
        return problems, [], None
    try:
        config, notes = read(written, on_cpu=on_cpu)
    except ConfigKeyError as error:
        return [_unknown(error)], [], None
    except (OmegaConfBaseException, TypeError, ValueError) as error:
        key = getattr(error, "full_key", None)
        return [Problem(f"{key}: {error.msg}" if key else str(error), key)], [], None
    problems = [*_sampling_problems(config), *_packing_problems(written, config), *_mode_problems(written, config, on_cpu=on_cpu)]
    return problems, notes, config


def packs(config: Any) -> bool:
    """Whether a micro-batch may hold several rows: only flash attention keeps them apart (`_prepare_mb_list`, areal/engine/fsdp_engine.py)."""
    return "flash" in config.actor.attn_impl


def _sampling_problems(config: Any) -> list[Problem]:
    problems = []
    for name, neutral in _WHOLE_DISTRIBUTION.items():
        value = getattr(config.gconfig, name)
        if value != (type(config.gconfig)().top_k if neutral is None else neutral):
            message = f"gconfig.{name} is {value}, and tokens are drawn from the whole distribution, whose logprobs are trained; leave it out."
            problems.append(Problem(message, f"gconfig.{name}"))
    if config.actor.temperature != config.gconfig.temperature:
        temperatures = f"actor.temperature is {config.actor.temperature}, and gconfig.temperature {config.gconfig.temperature}"
        problems.append(Problem(f"{temperatures}: tokens would be sampled by another distribution than is trained; leave actor.temperature out.", "actor.temperature"))
    for name in ("reward_norm", "adv_norm"):
        norm = getattr(config.actor, name)
        if norm is not None and "group" in (norm.mean_level, norm.std_level) and norm.group_size != config.gconfig.n_samples:
            message = f"actor.{name}.group_size is {norm.group_size}, and a task has {config.gconfig.n_samples} rollouts; write ${{gconfig.n_samples}}."
            problems.append(Problem(message, f"actor.{name}.group_size"))
    if config.gconfig.n_samples < 2 and config.actor.reward_norm is not None and config.actor.reward_norm.mean_level == "group":
        problems.append(Problem("gconfig.n_samples is 1, and a group of one has no advantage; set it to 2 or more.", "gconfig.n_samples"))
    return problems


def _packing_problems(written: Mapping[str, Any], config: Any) -> list[Problem]:
    rows = config.train_dataset.batch_size * config.gconfig.n_samples
    minibatches = config.actor.ppo_n_minibatches
    problems = []
    if minibatches > rows:
        problems.append(Problem(f"actor.ppo_n_minibatches is {minibatches}, and a batch has {rows} rows; lower it.", "actor.ppo_n_minibatches"))
    spec = _at(written, "actor.mb_spec") or {}
    for name in ("n_mbs", "max_tokens_per_mb", "granularity", "n_mbs_divisor"):
        value = spec.get(name)
        if value in (None, 1) and not (name == "n_mbs" and value == 1):
            continue
        key = f"actor.mb_spec.{name}"
        if not packs(config):
            message = (
                f"{key} is {value}, and with actor.attn_impl {config.actor.attn_impl} the rows that AReaL packs into a micro-batch attend to each other, "
                "which changes their logprobs without an error. Leave it out, so that a micro-batch has one row, or set actor.attn_impl to flash_attention_2."
            )
            problems.append(Problem(message, key))
        elif name == "n_mbs" and value > rows // minibatches:
            problems.append(Problem(f"{key} is {value}, and an update has {rows // minibatches} rows; lower it.", key))
    return problems


def _mode_problems(written: Mapping[str, Any], config: Any, *, on_cpu: bool) -> list[Problem]:
    problems = []
    if on_cpu:
        for key, wanted, value in (
            ("actor.attn_impl", "sdpa or eager", config.actor.attn_impl if packs(config) else None),
            ("actor.weight_update_mode", "disk", config.actor.weight_update_mode if config.actor.weight_update_mode != "disk" else None),
            ("actor.dtype", "float32", config.actor.dtype if config.actor.dtype != "float32" else None),
        ):
            if value is not None:
                problems.append(Problem(f"{key} is {value}, which needs a GPU, and torch finds none here; set it to {wanted}, or leave it out.", key))
    if config.actor.use_lora or config.rollout.use_lora:
        problems.append(Problem("actor.use_lora was not tried with this bridge: AReaL loads adapters by vLLM's or SGLang's own interface. Leave it out.", "actor.use_lora"))
    if config.scheduler.type is not None:
        message = f"scheduler.type is {config.scheduler.type}: AReaL's single controller was not tried with rollouts of an agent. Leave it out; AReaL then trains in one process."
        problems.append(Problem(message, "scheduler.type"))
    if config.actor.backend.split(":")[-1] != "d1":
        problems.append(Problem(f"actor.backend is {config.actor.backend}, and this bridge starts one rank; set it to fsdp:d1.", "actor.backend"))
    if config.critic is not None:
        problems.append(Problem("critic has no values for rollouts of several turns here; leave it out.", "critic"))
    return problems


def _unknown(error: Any) -> Problem:
    *sections, last = str(error.full_key).split(".")
    known = [field.name for field in dataclasses.fields(error.object_type)] if dataclasses.is_dataclass(error.object_type) else []
    where = getattr(error.object_type, "__name__", "configuration")
    return unknown(last, known, f"field of AReaL's {where}", "".join(f"{section}." for section in sections))


def _at(tree: Any, key: str) -> Any:
    for name in key.split("."):
        tree = tree.get(name) if isinstance(tree, Mapping) else None
    return tree


def _copy(tree: Any) -> Any:
    return {name: _copy(value) for name, value in tree.items()} if isinstance(tree, Mapping) else tree
