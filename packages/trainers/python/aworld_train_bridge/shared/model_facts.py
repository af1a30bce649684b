"""What `hello` says of the model and of the trainer's limits."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Mapping

from ..connection import Greeting
from ..errors import ChannelError
from ..frames import int32
from . import files
from .settings import WORKER, BridgeSettings


@dataclass(frozen=True)
class Limits:
    """Lengths in tokens; `context` is None where the trainer has no limit of its own."""

    prompt: int
    response: int
    context: int | None


@dataclass(frozen=True)
class Framework:
    name: str
    version: str


def to_greeting(
    settings: BridgeSettings, *, framework: Framework, model: str, tokenizer: Any, template_arguments: Mapping[str, Any], limits: Limits
) -> Greeting:
    """`hello` of this worker for the model of the folder or name `model`. Reads the model's files; takes a moment."""
    model_files = files.read_model_files(tokenizer)
    check, ids = files.render_check(tokenizer, template_arguments)
    hello = {
        "run": settings.run,
        "incarnation": settings.incarnation,
        "worker": WORKER,
        "framework": {"name": framework.name, "version": framework.version},
        "model": {
            "name": Path(model).name,
            "vocabularySize": vocabulary_size(model, tokenizer),
            "stopTokenIds": stop_token_ids(model_files, tokenizer),
        },
        "tokenizerHash": files.files_hash(model_files),
        "templateHash": files.template_hash(files.template_text(tokenizer)),
        "limits": {"maxPromptTokens": limits.prompt, "maxResponseTokens": limits.response, "contextLength": limits.context},
        "check": check,
    }
    return Greeting(hello=hello, arrays={"renderedIds": int32(ids)}, files=lambda: model_files)


def vocabulary_size(model: str, tokenizer: Any) -> int:
    """Rows of the model's embedding, which may be more than the tokenizer knows."""
    for path in (model, tokenizer.name_or_path):
        described = Path(str(path)) / "config.json"
        if described.is_file():
            content = json.loads(described.read_text(encoding="utf8"))
            size = content.get("vocab_size") or (content.get("text_config") or {}).get("vocab_size")
            if size:
                return int(size)
    return len(tokenizer)


def stop_token_ids(model_files: Mapping[str, bytes], tokenizer: Any) -> list[int]:
    """Ids at which engines end a completion: those of generation_config.json, and the tokenizer's own."""
    ids: set[int] = set()
    if "generation_config.json" in model_files:
        ends = json.loads(model_files["generation_config.json"]).get("eos_token_id")
        ids.update(ends if isinstance(ends, list) else [] if ends is None else [ends])
    if tokenizer.eos_token_id is not None:
        ids.add(int(tokenizer.eos_token_id))
    if not ids:
        raise ChannelError("TEMPLATE_UNSUPPORTED", f"The tokenizer of {tokenizer.name_or_path} has no eos token; add one to its tokenizer_config.json.")
    return sorted(ids)
