"""How long a channel waits for what."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ChannelTimes:
    """Every wait of a channel, in seconds."""

    connect: float = 60.0
    """How long the first connection is tried."""
    reconnect: float = 300.0
    """How long a lost connection is tried again before its rollouts fail."""
    greet: float = 30.0
    """From the upgrade to `welcome`."""
    ready: float = 300.0
    """From `welcome` to `ready`, while the service loads tokenizer and template."""
    ping: float = 15.0
    dead: float = 45.0
    """Silence after which a connection counts as lost."""
    backoff: float = 0.2
    backoff_limit: float = 5.0
    drain: float = 120.0
    """How long a finished rollout waits for calls that the policy still samples."""
    rollout: float = 3600.0
    """Deadline of a rollout that has none of its own, from `started`."""
    attempts: int = 3
    """The service keeps the deadline of an attempt by itself and may attempt again; here only so many of them end a rollout."""
    margin: float = 60.0
    """What is added for scoring."""
