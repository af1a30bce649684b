"""Keys of rollouts."""

from urllib.parse import quote


def to_key(run: str, incarnation: str, partition: str, step: int, uid: str, sample: int) -> str:
    """`run/incarnation/partition/step/uid/sample`, each percent-encoded as by encodeURIComponent."""
    return "/".join(quote(str(part), safe="!'()*") for part in (run, incarnation, partition, step, uid, sample))
