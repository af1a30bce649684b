"""Where the channel goes and who this worker is: environment variables first, then what the framework's own configuration says."""

from __future__ import annotations

import os
import secrets
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Mapping

from ..errors import ChannelError

WORKER = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(3)}"
"""This process among the workers of its incarnation; the same after a reconnect."""


@dataclass(frozen=True)
class BridgeSettings:
    """`deadline_seconds` of a rollout counts from its start; None leaves it to the service."""

    url: str
    token: str
    run: str
    incarnation: str
    run_path: Path | None
    deadline_seconds: float | None


def read_settings(entry: Mapping[str, Any], environment: Mapping[str, str] = os.environ, incarnation: Callable[[], str | None] = lambda: None) -> BridgeSettings:
    """Settings from AWORLD_TRAIN_* and a framework's entry {channel, token_file, run, incarnation, run_path, deadline_s}.

    `incarnation` is asked where neither names one. Raises ChannelError CONFIG_INVALID for what is missing.
    """

    def value(variable: str, key: str) -> str | None:
        found = environment.get(variable) or entry.get(key)
        return None if found in (None, "") else str(found)

    url = value("AWORLD_TRAIN_CHANNEL", "channel")
    if url is None:
        raise _missing("the address of the rollout service is not known", "AWORLD_TRAIN_CHANNEL", "ws://host:port/v1/channel")
    if not url.startswith(("ws://", "wss://")):
        raise ChannelError("CONFIG_INVALID", f'"{url}" is no WebSocket URL; set AWORLD_TRAIN_CHANNEL to ws://host:port/v1/channel.')
    identity = value("AWORLD_TRAIN_INCARNATION", "incarnation") or incarnation()
    if identity is None:
        raise _missing("this start of the trainer has no id", "AWORLD_TRAIN_INCARNATION", "a new uuid in the shell that starts it")
    run_path = value("AWORLD_TRAIN_RUN_PATH", "run_path")
    return BridgeSettings(
        url=url,
        token=_token(environment, entry),
        run=value("AWORLD_TRAIN_RUN", "run") or "run",
        incarnation=identity,
        run_path=None if run_path is None else Path(run_path),
        deadline_seconds=_deadline(entry.get("deadline_s")),
    )


def _token(environment: Mapping[str, str], entry: Mapping[str, Any]) -> str:
    if token := environment.get("AWORLD_TRAIN_CHANNEL_TOKEN"):
        return token
    path = environment.get("AWORLD_TRAIN_CHANNEL_TOKEN_FILE") or entry.get("token_file")
    if not path:
        return ""
    try:
        return Path(str(path)).read_text(encoding="utf8").strip()
    except OSError as error:
        raise ChannelError("CONFIG_INVALID", f"The file of the channel's token cannot be read: {error}; set AWORLD_TRAIN_CHANNEL_TOKEN_FILE.") from error


def _deadline(given: Any) -> float | None:
    if given is None:
        return None
    try:
        seconds = float(given)
    except (TypeError, ValueError):
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise ChannelError("CONFIG_INVALID", f"deadline_s is {given!r}; give seconds above 0, or leave it out.")
    return seconds


def _missing(what: str, variable: str, example: str) -> ChannelError:
    return ChannelError("CONFIG_INVALID", f"The bridge cannot start because {what}; set {variable} to {example}, in every process of the trainer.")
