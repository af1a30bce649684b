"""Trains with AReaL: ``python -m aworld_train_bridge.areal PLAN --metrics FILE``, or checks configurations: ``… --check``.

PLAN is a JSON file {model, configuration, tasks: {train, test}, order, evaluation: {samples, temperature, before}, limits:
{maxPromptTokens, maxResponseTokens}, logprobTolerance, templateArguments, deadlineSeconds, checkpoints, keepCheckpoints, path,
passes}: `order` lists ids of
training tasks as they are drawn, and null has AReaL draw them; `path` is the folder that AReaL writes to. FILE gets a line {step, data} a
step. With ``--check`` each line of standard input is JSON {configuration}, and a line on standard output answers it with {version, problems,
notes, exact}.
The channel's address comes from AWORLD_TRAIN_*. Rollouts are sampled by the servers of AREAL_LLM_SERVER_ADDRS, else by one of our own.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from concurrent.futures import Future
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any, Iterator, Mapping

# Compilation of the first forward pass takes 76 seconds on a processor; torch reads this when it is imported.
os.environ.setdefault("TORCHDYNAMO_DISABLE", "1")
# As torchrun does it: several threads wait for each other over rows this small, which took ten times the processor's time.
os.environ.setdefault("OMP_NUM_THREADS", "1")

from ..shared.module import Checked, refuse, run_module  # noqa: E402
from ..errors import RunError  # noqa: E402
from . import configuration  # noqa: E402

SERVERS = "AREAL_LLM_SERVER_ADDRS"


def on_cpu() -> bool:
    import torch

    return not torch.cuda.is_available()


def check(plan: Mapping[str, Any]) -> Checked:
    problems, notes, config = configuration.check(plan["configuration"], on_cpu=on_cpu())
    return Checked(metadata.version("areal"), problems, notes, config is not None and is_exact(config))


def is_exact(config: Any) -> bool:
    """Whether sampler and trainer round alike: one model in float32, sampled by our server."""
    return config.actor.dtype == "float32" and not os.environ.get(SERVERS)


def train(plan: Mapping[str, Any], metrics: Path) -> None:
    folder, checkpoints = Path(plan["path"]), Path(plan["checkpoints"])
    problems, notes, _ = configuration.check(plan["configuration"], on_cpu=on_cpu())
    refuse(problems)
    for note in notes:
        print(note, flush=True)
    from ..shared.settings import read_settings

    settings = read_settings({"deadline_s": plan.get("deadlineSeconds")})
    config, _ = configuration.read(
        plan["configuration"],
        on_cpu=on_cpu(),
        run={
            "cluster.fileroot": str(folder),
            # A second start on the names of the first would load its weights before they are saved, and then fail.
            "cluster.name_resolve": {"type": "nfs", "nfs_record_root": str(folder / "names" / settings.incarnation)},
            "actor.path": plan["model"],
            "tokenizer_path": plan["model"],
            "recover.mode": "on",
        },
    )
    os.environ.update({"AREAL_SPMD_MODE": "1", "RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(_free_port())})

    from areal.utils import name_resolve

    name_resolve.reconfigure(config.cluster.name_resolve)
    with inference_server(plan["model"], config) as ended:
        _train(plan, config, settings, checkpoints, metrics, ended)


def _train(plan: Mapping[str, Any], config: Any, settings: Any, checkpoints: Path, metrics: Path, ended: Future[int] | None) -> None:
    """`ended` has the exit code of our inference server once it is gone; None where others sample."""
    from datasets import Dataset

    from ..shared.batch_accounts import BatchAccounts
    from ..shared.files import read_model_files
    from ..shared.model_facts import Framework, Limits, stop_token_ids, to_greeting
    from ..shared.rollouts import Rollouts
    from ..shared.tasks import read_tasks
    from .engine import ArealEngine
    from .trainer import RolloutTrainer
    from .workflow import AgentWorkflow

    tasks = {name: read_tasks(Path(path)) for name, path in plan["tasks"].items() if path}
    dataset = Dataset.from_list([{"id": id} for id in plan.get("order") or tasks["train"]])
    trainer = RolloutTrainer(config, dataset, checkpoints, metrics, plan.get("keepCheckpoints"))
    if ended is not None:
        ended.add_done_callback(lambda each: trainer.fail(_gone(each.result())))
    tokenizer = trainer.tokenizer
    stops = stop_token_ids(read_model_files(tokenizer), tokenizer)
    context = getattr(trainer.actor.model_config.get_text_config(), "max_position_embeddings", None)
    limits = Limits(int(plan["limits"]["maxPromptTokens"]), int(plan["limits"]["maxResponseTokens"]), context)
    engine = ArealEngine(config.gconfig, tokenizer, stops, context or sys.maxsize, takes_stop_texts=config.rollout.backend.startswith("sglang"))
    rollouts = Rollouts(
        settings,
        lambda: to_greeting(
            settings,
            framework=Framework("areal", metadata.version("areal")),
            model=plan["model"],
            tokenizer=tokenizer,
            template_arguments=plan.get("templateArguments") or {},
            limits=limits,
        ),
        engine,
    )
    try:
        accounts = BatchAccounts(rollouts.ledger, plan.get("logprobTolerance") if ended is not None and config.actor.dtype == "float32" else None)
        workflow = AgentWorkflow(rollouts, tasks["train"], temperature=config.gconfig.temperature, filler=stops[0], fail=trainer.fail)
        trainer.use(workflow, rollouts, accounts, tasks.get("test", {}), plan["evaluation"], int(plan.get("passes", 1)))
        if plan["evaluation"].get("before") and trainer.start_step == 0 and "test" in tasks:
            trainer.evaluate()
            trainer.write_line(0)
        trainer.train(workflow=workflow)
        trainer.ended = True
        trainer.close()
    except Exception as error:
        trainer.ended = True
        raise trainer.failure or error from error
    finally:
        rollouts.close()


@contextmanager
def inference_server(model: str, config: Any) -> Iterator[Future[int] | None]:
    """Our own server over the model's folder, with its address for AReaL's client; nothing where the environment names others."""
    if os.environ.get(SERVERS):
        yield None
        return
    command = [sys.executable, "-W", "ignore", "-m", "aworld_train_bridge.areal.server", "--model", model, "--seed", str(config.seed), "--dtype", config.actor.dtype]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # noqa: S603
    ended: Future[int] = Future()
    try:
        line = server.stdout.readline()  # type: ignore[union-attr]
        if not line:
            raise _gone(server.wait())
        os.environ[SERVERS] = f"127.0.0.1:{json.loads(line)['port']}"
        threading.Thread(target=lambda: ended.set_running_or_notify_cancel() and ended.set_result(server.wait()), daemon=True).start()
        yield ended
    finally:
        os.environ.pop(SERVERS, None)
        server.kill()


def _gone(code: int) -> RunError:
    return RunError("POLICY_UNAVAILABLE", f"The inference server ended with {code}; its reason stands above. Run the same command again: the run resumes from its last checkpoint.")


def _free_port() -> int:
    with socket.socket() as each:
        each.bind(("127.0.0.1", 0))
        return int(each.getsockname()[1])


if __name__ == "__main__":
    sys.exit(run_module(train, check))
