"""The errors of the bridge."""

from __future__ import annotations

from typing import Any, Mapping


class ChannelError(Exception):
    """What went wrong, to what, and what to do; `code` as in the error catalogue, `retryable` when the same may work again."""

    def __init__(self, code: str, message: str, retryable: bool = False) -> None:
        super().__init__(code, message, retryable)
        self.code = code
        self.message = message
        self.retryable = retryable

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"

    def to_record(self) -> dict[str, Any]:
        """The error as it travels in a message."""
        return {"code": self.code, "message": self.message, "retryable": self.retryable}

    @classmethod
    def from_record(cls, record: Mapping[str, Any] | None, code: str, message: str) -> ChannelError:
        """An error that arrived in a message; `code` and `message` stand in for what it lacks."""
        record = record or {}
        return cls(str(record.get("code") or code), str(record.get("message") or message), bool(record.get("retryable")))


class RunError(ChannelError):
    """Ends a training: not one rollout failed, but all that follows would be wrong."""
