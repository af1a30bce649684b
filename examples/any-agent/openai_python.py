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


async def answer(question: str, *, base_url: str, api_key: str, model: str, stream: bool) -> str | None:
    messages = [{"role": "system", "content": INSTRUCTIONS}, {"role": "user", "content": question}]
    async with AsyncOpenAI(base_url=base_url, api_key=api_key) as client:
        for _ in range(MAX_TURNS):
            completion = await complete(client, stream, model=model, messages=messages, tools=[LOOKUP])
            message = completion.choices[0].message
            if not message.tool_calls:
                return message.content
            messages.append(message.to_dict())
            for call in message.tool_calls:
                result = lookup(**json.loads(call.function.arguments))
                messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
    return None


async def work(line: bytes) -> None:
    job = json.loads(line)
    try:
        result = {"answer": await answer(job["question"], **job["policy"])}
    except Exception as error:
        result = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps({"id": job["id"], **result}), flush=True)


async def main() -> None:
    reader = asyncio.StreamReader(limit=2**24)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    running: set[asyncio.Task] = set()
    while line := await reader.readline():
        task = asyncio.create_task(work(line))
        running.add(task)
        task.add_done_callback(running.discard)
    await asyncio.gather(*running)


asyncio.run(main())
