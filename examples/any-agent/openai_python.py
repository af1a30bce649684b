"""An agent of Python's `openai`. Each line of its input is a task as JSON, each line of its output an answer, as they are ready."""

import asyncio
import json
import sys

from openai import AsyncOpenAI

INSTRUCTIONS = "Answer questions about chemical elements. Look numbers up."
ATOMIC_NUMBERS = {"iron": 26, "copper": 29, "silver": 47, "tin": 50, "gold": 79, "lead": 82}
MAX_TURNS = 8
LOOKUP = {
    "type": "function",
    "function": {
        "name": "lookup",
        "description": "Gives the atomic number of an element.",
        "parameters": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
    },
}


def lookup(name: str) -> str:
    number = ATOMIC_NUMBERS.get(name)
    return f'There is no element "{name}".' if number is None else str(number)


async def complete(client: AsyncOpenAI, stream: bool, **request):
    if not stream:
        return await client.chat.completions.create(**request)
    async with client.chat.completions.stream(**request) as events:
        return await events.get_final_completion()


async def answer(client: AsyncOpenAI, model: str, question: str, stream: bool) -> str | None:
    messages = [{"role": "system", "content": INSTRUCTIONS}, {"role": "user", "content": question}]
    for _ in range(MAX_TURNS):
        completion = await complete(client, stream, model=model, messages=messages, tools=[LOOKUP])
        choice = completion.choices[0]
        if choice.finish_reason != "tool_calls":
            return choice.message.content
        messages.append(choice.message.to_dict())
        for call in choice.message.tool_calls:
            result = lookup(**json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
    return None


async def work(shared: AsyncOpenAI, line: bytes) -> None:
    job = json.loads(line)
    try:
        # Every rollout has an address of its own; the connections are shared.
        client = shared.with_options(base_url=job["baseUrl"], api_key=job["apiKey"])
        result = {"answer": await answer(client, job["model"], job["question"], job["stream"])}
    except Exception as error:
        result = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps({"id": job["id"], **result}), flush=True)


async def main() -> None:
    reader = asyncio.StreamReader(limit=2**24)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    async with AsyncOpenAI(base_url="http://127.0.0.1", api_key="unset") as shared, asyncio.TaskGroup() as tasks:
        while line := await reader.readline():
            tasks.create_task(work(shared, line))


asyncio.run(main())
