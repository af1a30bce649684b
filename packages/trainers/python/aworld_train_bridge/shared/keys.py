"""Keys of rollouts."""

from __future__ import annotations

from hashlib import sha256
from urllib.parse import quote


def to_key(run: str, incarnation: str, partition: str, step: int, uid: str, sample: int) -> str:
    """`run/incarnation/partition/step/uid/sample`, each percent-encoded as by encodeURIComponent."""
    return "/".join(quote(str(part), safe="!'()*") for part in (run, incarnation, partition, step, uid, sample))


def evaluation_seed(seed: int, key: str, trajectory: str, turn: int) -> int | None:
    """The seed of a model call of an evaluation, the same in every start of every run; None in training, where a server is faster without one."""
    place = key.split("/")[2:]
    if place[:1] != ["val"]:
        return None
    return int.from_bytes(sha256(repr((seed, place, trajectory, turn)).encode()).digest()[:4], "little")
