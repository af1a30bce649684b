"""Runs a reward function of the user's file for a parent process: one JSON object a line, on standard input and output.

The parent asks (`id`, `arguments`), this process answers (`id`, `kind`). What the user's code prints goes to standard
error. Synchronous functions run in threads, asynchronous ones in the event loop, several at once, as verl runs them
(verl 0.9.1, verl/experimental/reward_loop/reward_manager/naive.py). Standard library only, Python 3.8 or newer.
"""

import asyncio
import importlib.util
import inspect
import json
import math
import os
import sys
import threading
import traceback
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

PARAMETERS = ("data_source", "solution_str", "ground_truth", "extra_info")
DESCRIPTION_CHARACTERS = 80
TRACE_CHARACTERS = 4000
MAX_SCORES = 1000


class Model(NamedTuple):
    """Address, key and name of a frozen model, for any client."""

    base_url: str
    api_key: str
    model: str


class UnknownModel(LookupError):
    def __init__(self, name: str) -> None:
        super().__init__(f'there is no frozen model "{name}" here')
        self.name = name


def model_of(endpoints: Dict[str, Dict[str, str]]) -> Callable[[str], Model]:
    """The function that a reward takes as `model`."""

    def model(name: str) -> Model:
        if name not in endpoints:
            raise UnknownModel(name)
        found = endpoints[name]
        return Model(found["baseUrl"], found["apiKey"], found["model"])

    return model


class Pipe:
    """Standard input and output of this process, taken away from the user's code, which gets standard error instead."""

    def __init__(self) -> None:
        self._input = os.fdopen(os.dup(0), "r", encoding="utf-8", newline="\n")
        self._output = os.fdopen(os.dup(1), "w", encoding="utf-8", newline="\n")
        self._lock = threading.Lock()
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        os.dup2(2, 1)
        sys.stdout = sys.stderr

    def send(self, message: Dict[str, Any]) -> None:
        text = json.dumps(message)
        with self._lock:
            self._output.write(text + "\n")
            self._output.flush()

    def receive(self) -> Optional[Dict[str, Any]]:
        """The next request; None when the parent is gone."""
        line = self._input.readline()
        return json.loads(line) if line else None


def load(path: str) -> Any:
    """The user's file as a module; what lies beside it can be imported."""
    sys.path[0] = os.path.dirname(path)
    spec = importlib.util.spec_from_file_location("aworld_train_reward", path)
    if spec is None or spec.loader is None:
        raise ImportError("it is no Python source file")
    module = importlib.util.module_from_spec(spec)
    sys.modules["aworld_train_reward"] = module
    spec.loader.exec_module(module)
    return module


def describe_functions(module: Any) -> List[Dict[str, Any]]:
    """Every public callable of the module, and how it takes the four values of a reward."""
    return [
        {
            "name": name,
            "asksModels": takes_model(value),
            "own": getattr(value, "__module__", None) == module.__name__,
            "signature": signature_text(value),
            "async": is_async(value),
            "keywords": binds(value, (), dict.fromkeys(PARAMETERS + ("model",) * takes_model(value))),
            "positions": binds(value, PARAMETERS, dict.fromkeys(("model",) * takes_model(value))),
        }
        for name, value in vars(module).items()
        if callable(value) and not inspect.isclass(value) and not name.startswith("_")
    ]


def is_async(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))


def signature_text(function: Callable[..., Any]) -> str:
    try:
        return str(inspect.signature(function))
    except (TypeError, ValueError):
        return "(…)"


def takes_model(function: Callable[..., Any]) -> bool:
    """Whether the function has a parameter `model` beside the four values."""
    try:
        parameter = inspect.signature(function).parameters.get("model")
    except (TypeError, ValueError):
        return False
    return parameter is not None and parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)


def binds(function: Callable[..., Any], positional: Any, keyword: Dict[str, Any]) -> bool:
    try:
        inspect.signature(function).bind(*positional, **keyword)
    except TypeError:
        return False
    except ValueError:
        return bool(positional)
    return True


def limit_memory(megabytes: int, threads: int) -> None:
    """Bounds what this process may allocate from now on, stacks aside; Linux only, elsewhere there is no cheap way."""
    try:
        import resource

        with open("/proc/self/status", encoding="ascii") as status:
            used = next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmData:"))
        stack = resource.getrlimit(resource.RLIMIT_STACK)[0]
        stack = min(stack, 8 * 2**20) if stack > 0 else 8 * 2**20
        limit = used + (threads + 2) * stack + megabytes * 2**20
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    except (ImportError, OSError, StopIteration, ValueError):
        pass


def to_answer(value: Any) -> Dict[str, Any]:
    """What a reward returned, as verl reads it: a number, or a dict with `score`, whose other numbers are scores; None abstains.

    A dict under `agents` has the rewards of single agents, each a number.
    """
    if not isinstance(value, dict):
        number = to_number(value)
        return invalid(value) if number is None and value is not None else {"kind": "value", "reward": number, "scores": {}}
    if "score" not in value:
        keys = ", ".join(repr(key) for key in list(value)[:10]) or "nothing"
        return {"kind": "invalid", "description": f'a dict without "score" (it has {keys})'}
    reward = to_number(value["score"])
    if reward is None and value["score"] is not None:
        return invalid(value["score"], 'a dict whose "score" is ')
    numbers = {str(key): to_number(member) for key, member in value.items() if key != "score"}
    scores = {key: member for key, member in list(numbers.items())[:MAX_SCORES] if member is not None}
    answer = {"kind": "value", "reward": reward, "scores": scores}
    agents = value.get("agents")
    if agents is None or to_number(agents) is not None:
        return answer
    if not isinstance(agents, dict):
        return invalid(agents, 'a dict whose "agents" is ')
    own = {str(agent): to_number(member) for agent, member in agents.items()}
    for agent, member in agents.items():
        if own[str(agent)] is None:
            return invalid(member, f'a dict whose "agents" has for {agent!r} ')
    return {**answer, "agents": own}


def to_number(value: Any) -> Optional[float]:
    """A finite number, of Python or of any library; None for all else, text included."""
    if isinstance(value, (str, bytes, bytearray)) or not hasattr(value, "__float__"):
        return None
    try:
        number = float(value)
    except Exception:  # whatever the library of the value throws
        return None
    return number if math.isfinite(number) else None


def invalid(value: Any, prefix: str = "") -> Dict[str, Any]:
    return {"kind": "invalid", "description": prefix + describe(value)}


def describe(value: Any) -> str:
    if value is None:
        return "None"
    try:
        text = repr(value)
    except Exception:  # a __repr__ of the user's
        text = "…"
    text = text if len(text) <= DESCRIPTION_CHARACTERS else text[:DESCRIPTION_CHARACTERS] + "…"
    return f"{type(value).__name__} {text}"


def failure(error: BaseException) -> Dict[str, Any]:
    """What the user's code raised, and where."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename != __file__]
    where = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else None
    stack = "".join(traceback.format_exception(type(error), error, error.__traceback__))[-TRACE_CHARACTERS:]
    text = "".join(traceback.format_exception_only(type(error), error)).strip()
    unknown = {"unknownModel": error.name} if isinstance(error, UnknownModel) else {}
    return {"message": text, "where": where, "stack": stack, "outOfMemory": isinstance(error, MemoryError), **unknown}


class Runner:
    """Calls the chosen function; a call that outlives its deadline is answered, and its thread is the parent's to end."""

    def __init__(self, pipe: Pipe, function: Callable[..., Any], choice: Dict[str, Any]) -> None:
        self._pipe = pipe
        self._function = function
        self._by_keyword = choice["byKeyword"]
        self._asks_models = choice["asksModels"]
        self._is_async = is_async(function)
        self._threads = ThreadPoolExecutor(choice["threads"])
        self._tasks: Dict[int, "asyncio.Future[None]"] = {}

    def start(self, request: Dict[str, Any]) -> None:
        call = request["id"]
        self._tasks[call] = asyncio.ensure_future(self._answer(request))

    def cancel(self, call: int) -> None:
        task = self._tasks.get(call)
        if task is not None and self._is_async:
            task.cancel()

    async def _answer(self, request: Dict[str, Any]) -> None:
        call = request["id"]
        keywords = {"model": model_of(request["endpoints"])} if self._asks_models else {}
        work = asyncio.ensure_future(self._call(request["arguments"], keywords))
        try:
            done, _ = await asyncio.wait({work}, timeout=request["timeoutMs"] / 1000)
            answer = self._to_answer(*work.result()) if done else {"kind": "timeout", "stuck": not self._is_async}
        except asyncio.CancelledError:
            answer = {"kind": "cancelled"}
        finally:
            work.cancel()
            self._tasks.pop(call, None)
        self._pipe.send({"id": call, **answer})

    @staticmethod
    def _to_answer(value: Any, error: Optional[BaseException]) -> Dict[str, Any]:
        return to_answer(value) if error is None else {"kind": "threw", **failure(error)}

    async def _call(self, arguments: List[Any], keywords: Dict[str, Any]) -> Tuple[Any, Optional[BaseException]]:
        if not self._is_async:
            value, error = await asyncio.get_running_loop().run_in_executor(self._threads, self._invoke, arguments, keywords)
        else:
            value, error = self._invoke(arguments, keywords)
        if error is not None or not inspect.isawaitable(value):
            return value, error
        try:
            return await value, None
        except (Exception, SystemExit, KeyboardInterrupt) as raised:  # the last two would end the event loop
            return None, raised

    def _invoke(self, arguments: List[Any], keywords: Dict[str, Any]) -> Tuple[Any, Optional[BaseException]]:
        try:
            if self._by_keyword:
                return self._function(**dict(zip(PARAMETERS, arguments)), **keywords), None
            return self._function(*arguments, **keywords), None
        except BaseException as raised:  # SystemExit and KeyboardInterrupt of the user's code are failures of this call
            return None, raised


async def serve(pipe: Pipe, runner: Runner) -> None:
    loop = asyncio.get_running_loop()
    while True:
        request = await loop.run_in_executor(None, pipe.receive)
        if request is None:
            return
        if "cancel" in request:
            runner.cancel(request["cancel"])
        else:
            runner.start(request)


def end_with_parent() -> None:
    """Linux ends this process with its parent, whatever the user's code is doing then."""
    try:
        import ctypes

        ctypes.CDLL(None).prctl(1, 9)  # PR_SET_PDEATHSIG, SIGKILL (prctl(2))
    except (AttributeError, ImportError, OSError, TypeError):
        pass


def main() -> None:
    path = sys.argv[1]
    pipe = Pipe()
    end_with_parent()
    try:
        module = load(path)
        pipe.send({"kind": "loaded", "functions": describe_functions(module)})
    except BaseException as error:  # whatever the user's file does while it is imported
        pipe.send({"kind": "failed", **failure(error)})
        return
    choice = pipe.receive()
    if choice is None:
        return
    limit_memory(choice["memoryMb"], choice["threads"])
    runner = Runner(pipe, getattr(module, choice["use"]), choice)
    asyncio.run(serve(pipe, runner))


if __name__ == "__main__":
    status = 0
    try:
        main()
    except BaseException:
        traceback.print_exc()
        status = 1
    # Not a return: threads of the user's code that never end would keep the process.
    sys.stderr.flush()
    os._exit(status)
