"""A row of verl's dataset as the service reads it."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import Any, Mapping

from ..errors import ChannelError
from ..plain import to_plain

# RLHFDataset (verl/utils/dataset/rl_dataset.py) and AgentLoopWorkerTQ (trainer/ppo/v1/agent_loop_tq.py) of 0.9.1 add these.
_ADDED = frozenset({"raw_prompt", "uid", "session_id", "global_steps", "dummy_tensor", "agent_name", "tools_kwargs", "interaction_kwargs", "priority"})
_NAMED = frozenset({"prompt", "data_source", "reward_model", "extra_info", "index"})
_VALIDATION = frozenset({"val", "validation", "test"})


@cache
def reserved_columns() -> dict[str, dict[str, str]]:
    """{overwritesOutput, setByTrainer}, each {column: what it holds}."""
    return json.loads(resources.files(__package__).joinpath("reserved_columns.json").read_text(encoding="utf8"))


def to_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """`run()`'s keyword arguments as {prompt, dataSource, rewardModel, extraInfo, index, columns}, plain JSON.

    Raises ChannelError DATASET_INVALID for a column that would overwrite what the agent loop returns, or a value without JSON.
    """
    overwriting = reserved_columns()["overwritesOutput"]
    for column in row:
        if column in overwriting:
            message = f'The dataset has a column "{column}", which verl would write over {overwriting[column]}; rename the column.'
            raise ChannelError("DATASET_INVALID", message)
    messages = row.get("raw_prompt")
    if messages is None:
        raise ChannelError("DATASET_INVALID", 'The dataset has no messages in its column "prompt"; set data.prompt_key and data.return_raw_chat=True.')
    return {
        "prompt": to_plain(messages, "prompt"),
        "dataSource": to_plain(row.get("data_source"), "data_source"),
        "rewardModel": to_plain(row.get("reward_model"), "reward_model"),
        "extraInfo": to_plain(row.get("extra_info"), "extra_info") or {},
        "index": to_plain(row.get("index"), "index"),
        "columns": {name: to_plain(value, name) for name, value in row.items() if name not in _ADDED and name not in _NAMED},
    }


def partition_of(row: Mapping[str, Any]) -> str:
    """`val` or `train`. verl does not tell an agent loop that it validates; extra_info.split does."""
    extra = row.get("extra_info")
    split = extra.get("split") if isinstance(extra, Mapping) else None
    return "val" if str(split) in _VALIDATION else "train"


def to_sampling(sampling_params: Mapping[str, Any]) -> dict[str, Any]:
    """verl's sampling parameters in the words of the channel."""
    return {
        "temperature": float(sampling_params.get("temperature", 1.0)),
        "topP": float(sampling_params.get("top_p", 1.0)),
        "topK": int(sampling_params.get("top_k", -1)),
        "repetitionPenalty": float(sampling_params.get("repetition_penalty", 1.0)),
    }
