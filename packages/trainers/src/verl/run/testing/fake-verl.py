"""Stands for verl in tests of the launcher: a process that writes metrics, says things, crashes and starts others, as told.

Usage: fake-verl.py step=2 child=1 say=TEXT exit=1 kill=9 hang=1 deaf=1 sleep=0.2 …, done in that order of arguments.
"""

import json
import os
import signal
import subprocess
import sys
import time


def log(step, **data):
    with open(os.environ["VERL_FILE_LOGGER_PATH"], "ab", buffering=0) as file:
        file.write(json.dumps({"step": step, "data": data}).encode() + b"\n")


open(os.environ["VERL_FILE_LOGGER_PATH"], "wb").close()
for argument in sys.argv[1:]:
    name, _, value = argument.partition("=")
    if name == "step":
        log(int(value), **{"critic/score/mean": 0.1 * int(value), "timing_s/step": 1.0, "actor/loss": float("nan") if value == "9" else 0.5})
    elif name == "say":
        print(value, flush=True)
    elif name == "environment":
        print(json.dumps(dict(os.environ)), flush=True)
    elif name == "child":
        # What Ray does: a daemon in a session of its own that outlives its parent.
        code = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(600)"
        orphan = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
        print(f"child {orphan.pid}", flush=True)
    elif name == "deaf":
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    elif name == "sleep":
        time.sleep(float(value))
    elif name == "hang":
        print("hanging", flush=True)
        while True:
            time.sleep(0.1)
    elif name == "raise":
        raise RuntimeError(value)
    elif name == "kill":
        os.kill(os.getpid(), int(value))
    elif name == "exit":
        sys.exit(int(value))
