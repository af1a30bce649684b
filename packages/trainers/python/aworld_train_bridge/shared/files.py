"""The model's tokenizer as the service needs it: files, hashes, and a conversation rendered here for comparison."""

from __future__ import annotations

import hashlib
import json
import tempfile
from pathlib import Path
from typing import Any, Mapping

from ..errors import ChannelError

MODEL_FILES = (
    "added_tokens.json",
    "chat_template.jinja",
    "chat_template.json",
    "config.json",
    "generation_config.json",
    "merges.txt",
    "special_tokens_map.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "vocab.json",
)

# Spaced as json.dumps writes it, so that templates which print the text and those which print the object agree.
_ARGUMENTS = {"element": "iron", "digits": 2}
_CALL_ID = "call00001"
_TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "atomic_weight",
            "description": "Weight of an element.",
            "parameters": {"type": "object", "properties": {"element": {"type": "string"}, "digits": {"type": "integer"}}, "required": ["element"]},
        },
    }
]


def read_model_files(tokenizer: Any) -> dict[str, bytes]:
    """Bytes by name of what stands in the tokenizer's folder; a template that replaced the model's own takes its place.

    A tokenizer that came from a hub is written to a temporary folder first. Raises ChannelError TEMPLATE_UNSUPPORTED without
    tokenizer.json or chat template.
    """
    folder = Path(str(tokenizer.name_or_path))
    if folder.is_dir():
        files = _read_folder(folder)
    else:
        with tempfile.TemporaryDirectory(prefix="aworld-train-tokenizer-") as name:
            tokenizer.save_pretrained(name)
            files = _read_folder(Path(name))
    if "tokenizer.json" not in files:
        raise ChannelError("TEMPLATE_UNSUPPORTED", f"{tokenizer.name_or_path} has no tokenizer.json; save it with AutoTokenizer.from_pretrained(…).save_pretrained(…).")
    template = template_text(tokenizer)
    if _template_of(files) != template:
        files["chat_template.jinja"] = template.encode()
    return dict(sorted(files.items()))


def files_hash(files: Mapping[str, bytes]) -> str:
    """Hex sha256 over the files sorted by name: name in UTF-8, a zero byte, length as uint64 LE, bytes."""
    digest = hashlib.sha256()
    for name in sorted(files, key=str.encode):
        digest.update(name.encode() + b"\0" + len(files[name]).to_bytes(8, "little"))
        digest.update(files[name])
    return digest.hexdigest()


def template_hash(template: str) -> str:
    """Hex sha256 of the template's text in UTF-8."""
    return hashlib.sha256(template.encode()).hexdigest()


def template_text(tokenizer: Any) -> str:
    """The template that renders requests without tools; models may have several."""
    template = tokenizer.chat_template
    if isinstance(template, Mapping):
        template = template.get("default")
    if not template:
        raise ChannelError("TEMPLATE_UNSUPPORTED", f"The tokenizer of {tokenizer.name_or_path} has no chat template; put chat_template.jinja beside its tokenizer.json.")
    return str(template)


def render(tokenizer: Any, messages: list[dict[str, Any]], tools: list[dict[str, Any]] | None, arguments: Mapping[str, Any]) -> list[int]:
    """Ids of a conversation with generation prompt, rendered as text first, so that no version's return type matters."""
    text = tokenizer.apply_chat_template(messages, tools=tools, add_generation_prompt=True, tokenize=False, **arguments)
    return list(tokenizer(text, add_special_tokens=False)["input_ids"])


def render_check(tokenizer: Any, arguments: Mapping[str, Any]) -> tuple[dict[str, Any], list[int]]:
    """The richest conversation that the template takes: system, tool call and tool result, else less of it; and its ids."""
    problem: Exception | None = None
    for system in (True, False):
        for called in (True, False):
            messages, tools = _conversation(system, called)
            for form in ("text", "object") if called else ("text",):
                given = _with_arguments(messages, form)
                try:
                    text = tokenizer.apply_chat_template(given, tools=tools, add_generation_prompt=True, tokenize=False, **arguments)
                    if called and not _prints_call(text):
                        continue
                    ids = render(tokenizer, given, tools, arguments)
                except Exception as error:  # a template raises what it likes
                    problem = error
                    continue
                return {"messages": messages, "tools": tools, "templateArguments": dict(arguments)}, ids
    raise ChannelError("TEMPLATE_UNSUPPORTED", f"The chat template of {tokenizer.name_or_path} cannot render a user message: {problem}.")


def _conversation(system: bool, called: bool) -> tuple[list[dict[str, Any]], list[dict[str, Any]] | None]:
    head = [{"role": "system", "content": "You answer in one word."}] if system else []
    question = {"role": "user", "content": "How heavy is it? Größe — 重量"}
    if not called:
        return [*head, question, {"role": "assistant", "content": "Heavy."}, {"role": "user", "content": "And gold?"}], None
    call = {"id": _CALL_ID, "type": "function", "function": {"name": "atomic_weight", "arguments": json.dumps(_ARGUMENTS)}}
    answer = {"role": "assistant", "content": "I look it up.", "tool_calls": [call]}
    return [*head, question, answer, {"role": "tool", "tool_call_id": _CALL_ID, "name": "atomic_weight", "content": "55.85"}], _TOOLS


def _with_arguments(messages: list[dict[str, Any]], form: str) -> list[dict[str, Any]]:
    """Arguments of calls as text, as the wire has them, or as an object, which many templates ask for."""
    if form == "text":
        return messages
    copy = json.loads(json.dumps(messages))
    for message in copy:
        for call in message.get("tool_calls", []):
            call["function"]["arguments"] = json.loads(call["function"]["arguments"])
    return copy


def _prints_call(text: str) -> bool:
    """A template given the wrong form prints escaped JSON, Python's repr, or nothing."""
    escaped = '\\"element\\"' in text or "'element': 'iron'" in text
    return "iron" in text and "55.85" in text and not escaped


def _read_folder(folder: Path) -> dict[str, bytes]:
    return {name: path.read_bytes() for name in MODEL_FILES if (path := folder / name).is_file()}


def _template_of(files: Mapping[str, bytes]) -> str | None:
    if "chat_template.jinja" in files:
        return files["chat_template.jinja"].decode()
    for name in ("tokenizer_config.json", "chat_template.json"):
        template = json.loads(files[name]).get("chat_template") if name in files else None
        if isinstance(template, list):
            template = {entry["name"]: entry["template"] for entry in template}.get("default")
        if template is not None:
            return str(template)
    return None
