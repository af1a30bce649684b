"""Lists the tools of an MCP server with Python's official client, and calls each with the arguments on stdin; prints both as JSON."""

import asyncio
import json
import sys

from mcp import Client
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client


async def main(url: str, token: str, mode: str) -> None:
    arguments = json.load(sys.stdin)
    http = create_mcp_http_client(headers={"Authorization": f"Bearer {token}", "SESSION_ID": f"python.{mode}"})
    async with Client(streamable_http_client(url, http_client=http), mode=mode) as client:
        tools = (await client.list_tools()).tools
        results = {}
        for tool in tools:
            result = await client.call_tool(tool.name, arguments.get(tool.name, {}))
            results[tool.name] = {
                "isError": result.is_error,
                "text": "".join(part.text for part in result.content if part.type == "text"),
            }
        print(json.dumps(results))


asyncio.run(main(*sys.argv[1:]))
