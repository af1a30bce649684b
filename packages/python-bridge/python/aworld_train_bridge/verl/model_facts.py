"""What `hello` says of the model and of verl's limits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Mapping

from ..connection import Greeting
from ..errors import ChannelError
from ..frames import int32
from . import files
from .settings import WORKER, BridgeSettings


def to_greeting(settings: BridgeSettings, config: Any, tokenizer: Any, template_arguments: Mapping[str, Any], version: str) -> Greeting:
    """`hello` of this worker, from verl's configuration and tokenizer. Reads the model's files; takes a moment."""
    model_files = files.read_model_files(tokenizer)
    check, ids = files.render_check(tokenizer, template_arguments)
    rollout = config.actor_rollout_ref.rollout
    hello = {
        "run": settings.run,
        "incarnation": settings.incarnation,
        "worker": WORKER,
        "framework": {"name": "verl", "version": version},
        "model": {
            "name": Path(str(config.actor_rollout_ref.model.path)).name,
            "vocabularySize": vocabulary_size(config, tokenizer),
            "stopTokenIds": stop_token_ids(model_files, tokenizer),
        },
        "tokenizerHash": files.files_hash(model_files),
        "templateHash": files.template_hash(files.template_text(tokenizer)),
        "limits": {
            "maxPromptTokens": int(rollout.prompt_length),
            "maxResponseTokens": int(rollout.response_length),
            "contextLength": None if rollout.get("max_model_len") is None else int(rollout.max_model_len),
        },
        "check": check,
    }
    return Greeting(hello=hello, arrays={"renderedIds": int32(ids)}, files=lambda: model_files)


def vocabulary_size(config: Any, tokenizer: Any) -> int:
    """Rows of the model's embedding, which may be more than the tokenizer knows."""
    for path in (config.actor_rollout_ref.model.path, tokenizer.name_or_path):
        described = Path(str(path)) / "config.json"
        if described.is_file():
            content = json.loads(described.read_text(encoding="utf8"))
            size = content.get("vocab_size") or (content.get("text_config") or {}).get("vocab_size")
            if size:
                return int(size)
    return len(tokenizer)


def stop_token_ids(model_files: Mapping[str, bytes], tokenizer: Any) -> list[int]:
    """Ids at which verl's engines end a completion: those of generation_config.json, and the tokenizer's own."""
    ids: set[int] = set()
    if "generation_config.json" in model_files:
        given = json.loads(model_files["generation_config.json"]).get("eos_token_id")
        ids.update(given if isinstance(given, list) else [] if given is None else [given])
    if tokenizer.eos_token_id is not None:
        ids.add(int(tokenizer.eos_token_id))
    if not ids:
        raise ChannelError("TEMPLATE_UNSUPPORTED", f"The tokenizer of {tokenizer.name_or_path} has no eos token; add one to its tokenizer_config.json.")
    return sorted(ids)
