"""Renders conversations with transformers, line by line: line_oracle.py MODELS.json

MODELS: folders of models, each with arguments of the template and with the form in which its template takes messages.
Each line of input is a Chat Completions request and the models that it is for, by their places; the line that answers it has text
and ids of apply_chat_template for each of them.
"""
import json
import os
import sys
from pathlib import Path

from oracle import FrozenClock, attempt


def message_for(message, form, ids):
    """The message as a caller of apply_chat_template with this template would write it."""
    wanted = {**message, "content": message.get("content") or ""}
    if wanted["role"] == "developer" and not form["developerRole"]:
        wanted["role"] = "system"
    reasoning = wanted.get("reasoning_content")
    if reasoning and form["reasoningField"] == "inline":
        wanted["content"] = f"<think>\n{reasoning}\n</think>\n\n" + wanted["content"]
    if wanted.get("tool_calls"):
        wanted["tool_calls"] = [call_for(call, form, ids) for call in wanted["tool_calls"]]
        if wanted["content"] == "":
            wanted["content"] = form["emptyContent"]
    if wanted["role"] == "tool":
        prompt_id, name = ids[wanted["tool_call_id"]]
        wanted["tool_call_id"] = prompt_id
        if form["toolNameInResult"]:
            wanted.setdefault("name", name)
    return wanted


def call_for(call, form, ids):
    function = call["function"]
    count = len(ids)
    forms = {"any": call["id"], "alphanumeric-9": f"c{count:08}", "function-index": f"functions.{function['name']}:{count}"}
    ids[call["id"]] = (forms[form["idForm"]], function["name"])
    arguments = function["arguments"] if form["arguments"] == "string" else json.loads(function["arguments"])
    return {**call, "id": ids[call["id"]][0], "function": {**function, "arguments": arguments}}


def rendering(tokenizer, entry, request):
    ids = {}
    messages = [message_for(message, entry["form"], ids) for message in request["messages"]]
    continues = messages[-1]["role"] == "assistant"
    options = {"add_generation_prompt": not continues, "continue_final_message": continues, **entry["arguments"]}
    text = tokenizer.apply_chat_template(messages, tools=request.get("tools"), tokenize=False, **options)
    # UTF-8, and so a tokenizer, has no place for half of a surrogate pair.
    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return {"text": text, "ids": tokenizer(text, add_special_tokens=False)["input_ids"]}


def main():
    os.environ["HF_HUB_OFFLINE"] = "1"
    from transformers import PreTrainedTokenizerFast
    from transformers.utils import chat_template_utils

    chat_template_utils.datetime = FrozenClock
    entries = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    tokenizers = [PreTrainedTokenizerFast.from_pretrained(entry["directory"]) for entry in entries]
    for line in sys.stdin:
        asked = json.loads(line)
        answers = [attempt(lambda: rendering(tokenizers[at], entries[at], asked["request"])) for at in asked["models"]]
        print(json.dumps(answers), flush=True)


main()
