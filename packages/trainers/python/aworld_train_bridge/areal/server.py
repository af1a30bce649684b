"""An inference server for AReaL where there is no vLLM: the part of vLLM's HTTP interface that its client calls
(`areal/engine/vllm_remote.py` and `vllm_ext/areal_vllm_server.py`, AReaL 1.0.4), over one Hugging Face model.

Run as ``python -m aworld_train_bridge.areal.server --model DIR [--seed N] [--dtype float32]``. It prints one line of JSON, {port}, and
serves on 127.0.0.1 until its standard input ends.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import threading
from pathlib import Path
from typing import Any, Mapping

_FINISH = {"stop": "stop", "length": "length", "aborted": "abort"}


def sampling_options(body: Mapping[str, Any], vocabulary: int) -> dict[str, Any]:
    """What a request asks of the sampler. AReaL's `top_k` of 1e8 stands for every token. Raises ValueError for what is not sampled here."""
    names = ("temperature", "top_p", "max_tokens", "stop", "stop_token_ids", "ignore_eos")
    options = {name: body[name] for name in names if body.get(name) is not None}
    if 0 < (top_k := int(body.get("top_k") or 0)) < vocabulary:
        options["top_k"] = top_k
    if body.get("use_beam_search"):
        raise ValueError("This server has no beam search; set gconfig.use_beam_search to false.")
    return options


def to_answer(request: Any) -> dict[str, Any]:
    """vLLM's answer of `/v1/completions` with `return_tokens_as_token_ids`."""
    logprobs = {"tokens": [f"token_id:{id}" for id in request.ids], "token_logprobs": request.logprobs}
    return {"choices": [{"index": 0, "finish_reason": _FINISH[request.finish], "logprobs": logprobs}]}


def application(server: Any, vocabulary: int) -> Any:
    """The routes over a `SamplingServer`. Bad requests are answered with HTTP 400 and the reason, those of a page in a browser with 403."""
    from aiohttp import web
    from safetensors.torch import load_file

    async def complete(request: Any) -> Any:
        body = await request.json()
        try:
            drawn, _ = await server.sample([int(id) for id in body["prompt"]], sampling_options(body, vocabulary), "")
        except (KeyError, TypeError, ValueError) as error:
            return web.json_response({"error": {"message": str(error)}}, status=400)
        return web.json_response(to_answer(drawn))

    async def update_weights(request: Any) -> Any:
        folder = Path(str((await request.json())["model_path"]))
        sent: dict[str, Any] = {}
        for file in sorted(folder.glob("*.safetensors")):
            sent.update(await asyncio.to_thread(load_file, file))
        try:
            loaded = await server.load_weights(sent, None)
        except ValueError as error:
            print(f"The weights of {folder} were not loaded: {error}", file=sys.stderr, flush=True)
            return web.json_response({"success": False, "message": str(error)}, status=400)
        return web.json_response({"success": True, "message": f"{loaded} parameters"})

    async def pause(_: Any) -> Any:
        return web.json_response({"success": True, "message": f"{await server.abort_all()} requests aborted"})

    async def resume(_: Any) -> Any:
        server.resume()
        return web.json_response({"success": True})

    async def health(_: Any) -> Any:
        return web.json_response({})

    @web.middleware
    async def refuse_pages(request: Any, handler: Any) -> Any:
        # A browser names the page that sends a request, which may be anybody's, and reaches loopback without leave. Programs name none.
        if "Origin" in request.headers:
            return web.json_response({"error": {"message": "A page in a browser is no trainer."}}, status=403)
        return await handler(request)

    app = web.Application(client_max_size=1 << 28, middlewares=[refuse_pages])
    app.router.add_get("/health", health)
    app.router.add_post("/v1/completions", complete)
    app.router.add_post("/areal_update_weights", update_weights)
    app.router.add_post("/areal_pause_generation", pause)
    app.router.add_post("/areal_continue_generation", resume)
    return app


async def serve(model: Any, tokenizer: Any, seed: int) -> None:
    from aiohttp import web

    from ..shared.files import read_model_files
    from ..shared.model_facts import Limits, stop_token_ids
    from ..sample.server import SamplingServer

    context = int(getattr(model.config, "max_position_embeddings", None) or sys.maxsize)
    server = SamplingServer(model, tokenizer.decode, stop_token_ids(read_model_files(tokenizer), tokenizer), Limits(context, context, context), seed=seed)
    runner = web.AppRunner(application(server, model.config.vocab_size), access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    print(json.dumps({"port": runner.addresses[0][1]}), flush=True)
    await asyncio.Event().wait()


def end_with_parent() -> None:
    """Whoever started this server holds the other end of its standard input."""

    def wait() -> None:
        while sys.stdin.buffer.read(1):
            pass
        os._exit(0)

    threading.Thread(target=wait, daemon=True).start()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--dtype", default="float32")
    options = parser.parse_args()
    end_with_parent()

    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = AutoModelForCausalLM.from_pretrained(options.model, dtype=getattr(torch, options.dtype), attn_implementation="sdpa").to(device).eval()
    asyncio.run(serve(model, AutoTokenizer.from_pretrained(options.model), options.seed))


if __name__ == "__main__":
    main()
