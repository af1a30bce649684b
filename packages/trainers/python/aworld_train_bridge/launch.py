"""Runs a command and ends all that it started when asked to, or when whoever asked is gone.

Run as a program: ``python -I launch.py [options] -- command …``. A line ``stop`` on standard input asks for the end, and
so does the end of standard input, which comes when the process that holds it dies. What the command came to is written to
file descriptor 3 as one JSON object ``{"code": int | null, "signal": str | null}``.

``python -I launch.py --sweep --marker NAME=VALUE`` ends what an earlier guard left behind.

Standard library only; nothing of verl or Ray is imported.
"""

import argparse
import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
LINUX = sys.platform.startswith("linux")


def prctl(option: int, value: int) -> None:
    """Sets one option of this process; does nothing but on Linux."""
    if LINUX:
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def processes() -> dict[int, int]:
    """Every process and its parent. A process without either, which has ended, is left out."""
    if LINUX:
        found = {}
        for name in os.listdir("/proc"):
            if name.isdigit():
                try:
                    with open(f"/proc/{name}/stat", "rb") as file:
                        state, parent = file.read().rpartition(b")")[2].split()[:2]
                except OSError:
                    continue
                if state not in (b"Z", b"X"):
                    found[int(name)] = int(parent)
        return found
    lines = subprocess.run(["ps", "-Axo", "pid=,ppid=,stat="], capture_output=True, text=True, check=False).stdout.splitlines()
    rows = [line.split() for line in lines]
    return {int(row[0]): int(row[1]) for row in rows if len(row) == 3 and not row[2].startswith("Z")}


def carries(pid: int, marker: bytes) -> bool:
    """Whether a process was started with ``marker`` in its environment; on Linux, for processes of this user."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return marker in file.read().split(b"\0")
    except OSError:
        return False


def descendants(parents: dict[int, int], root: int) -> set[int]:
    """Processes below ``root``."""
    children: dict[int, list[int]] = {}
    for pid, parent in parents.items():
        children.setdefault(parent, []).append(pid)
    found, waiting = set(), [root]
    while waiting:
        for pid in children.get(waiting.pop(), []):
            if pid not in found:
                found.add(pid)
                waiting.append(pid)
    return found


def ancestors(parents: dict[int, int], pid: int) -> set[int]:
    """``pid`` and all above it, which are never ended."""
    found = set()
    while pid in parents and pid not in found:
        found.add(pid)
        pid = parents[pid]
    return found


class Guard:
    """One command and all that it started."""

    def __init__(self, marker: str | None) -> None:
        self.marker = marker.encode() if marker else None
        self.child: int | None = None
        self.status: int | None = None

    def start(self, command: list[str]) -> None:
        prctl(PR_SET_CHILD_SUBREAPER, 1)
        process = subprocess.Popen(  # noqa: S603
            command, stdin=subprocess.DEVNULL, preexec_fn=lambda: prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        )
        self.child = process.pid
        process.returncode = 0  # reaped below, together with what it left

    def reap(self) -> None:
        """Takes the ends of the command and of orphans that became ours."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == self.child:
                self.status = status

    def left(self) -> set[int]:
        """What still runs of the command."""
        self.reap()
        parents = processes()
        mine = descendants(parents, os.getpid()) if self.child is not None else set()
        if self.marker:
            mine |= {pid for pid in parents if pid not in mine and carries(pid, self.marker)}
        return mine - ancestors(parents, os.getpid())

    def wait_child(self, seconds: float) -> bool:
        end = time.monotonic() + seconds
        while self.status is None and time.monotonic() < end:
            self.reap()
            time.sleep(0.05)
        return self.status is not None

    def wait_none(self, seconds: float) -> bool:
        end = time.monotonic() + seconds
        while self.left():
            if time.monotonic() >= end:
                return False
            time.sleep(0.1)
        return True

    def signal_child(self, number: int) -> None:
        self.reap()
        if self.status is None and self.child is not None:
            os.kill(self.child, number)

    def signal_left(self, number: int) -> None:
        for pid in self.left():
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass

    def end(self, interrupt_s: float, terminate_s: float) -> None:
        """SIGINT and SIGTERM to the command, then SIGKILL to all that is left."""
        self.signal_child(signal.SIGINT)
        if not self.wait_child(interrupt_s):
            self.signal_child(signal.SIGTERM)
            self.wait_child(terminate_s)

    def sweep(self, grace_s: float) -> None:
        """Ends what the command left: it may end by itself for ``grace_s``, then SIGTERM, then SIGKILL."""
        if self.wait_none(grace_s):
            return
        self.signal_left(signal.SIGTERM)
        if self.wait_none(min(2.0, grace_s)):
            return
        for _ in range(50):  # a process may start another while it is ended
            self.signal_left(signal.SIGKILL)
            if self.wait_none(0.2):
                return


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--marker", help="NAME=VALUE that every process of the command carries in its environment")
    parser.add_argument("--interrupt-s", type=float, default=15)
    parser.add_argument("--terminate-s", type=float, default=10)
    parser.add_argument("--grace-s", type=float, default=5, help="for what is left after the command")
    parser.add_argument("--remove", help="folder to remove at the end")
    parser.add_argument("--sweep", action="store_true")
    parser.add_argument("command", nargs="*")
    options = parser.parse_args()
    guard = Guard(options.marker)
    if options.sweep:
        guard.sweep(0)
        return 0

    asked = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: asked.set())
    guard.start(options.command)

    def listen() -> None:
        for line in sys.stdin.buffer:
            if line.strip() == b"stop":
                break
        asked.set()

    threading.Thread(target=listen, daemon=True).start()
    while guard.status is None and not asked.wait(0.1):
        guard.reap()
    if guard.status is None:
        guard.end(options.interrupt_s, options.terminate_s)
    guard.sweep(options.grace_s)
    guard.wait_child(1)
    if options.remove:
        shutil.rmtree(options.remove, ignore_errors=True)
    number = os.WTERMSIG(guard.status) if guard.status is not None and os.WIFSIGNALED(guard.status) else None
    code = os.WEXITSTATUS(guard.status) if guard.status is not None and os.WIFEXITED(guard.status) else None
    try:
        os.write(3, json.dumps({"code": code, "signal": signal.Signals(number).name if number else None}).encode() + b"\n")
    except OSError:
        pass  # whoever asked is gone
    return 0


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)  # the thread that reads standard input may hold its lock
