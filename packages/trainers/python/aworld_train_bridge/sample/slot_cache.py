"""Keys and values of many sequences of different lengths, one row each."""

from typing import Any

import torch


class SlotCache:
    """A cache that Hugging Face attention layers write to: row = sequence, and each row has a length of its own.

    Before a forward pass `aim` says which rows it computes and at which positions; the layers then call `update`.
    Rows are kept together at the front, so that what attention reads is a view and never a copy.
    """

    def __init__(self, layers: int) -> None:
        self.keys: list[torch.Tensor | None] = [None] * layers
        self.values: list[torch.Tensor | None] = [None] * layers
        self._rows = slice(0, 0)
        self._positions = torch.empty(0, 0, dtype=torch.long)
        self._read = 0

    def aim(self, rows: slice, positions: torch.Tensor, read: int) -> None:
        """The next pass computes `rows` at `positions` [rows, new] and attends to the first `read` positions."""
        self._rows, self._positions, self._read = rows, positions, read

    def update(self, keys: torch.Tensor, values: torch.Tensor, layer: int, *_: Any, **__: Any) -> tuple[torch.Tensor, ...]:
        """Stores keys and values [rows, heads, new, width] and returns those to attend to: [rows, heads, read, width]."""
        return self._store(self.keys, layer, keys), self._store(self.values, layer, values)

    def move(self, source: int, target: int, length: int) -> None:
        """Copies the first `length` positions of a row over another."""
        for stored in (*self.keys, *self.values):
            if stored is not None:
                stored[target, :, :length] = stored[source, :, :length]

    def get_seq_length(self, *_: Any) -> int:
        """Positions that came before the pass; the models ask for it where they are given no positions."""
        return self._read - self._positions.shape[1]

    def _store(self, tensors: list[torch.Tensor | None], layer: int, new: torch.Tensor) -> torch.Tensor:
        stored = self._grown(tensors[layer], new)
        tensors[layer] = stored
        rows = torch.arange(self._rows.start, self._rows.stop, device=new.device).unsqueeze(1)
        stored[rows, :, self._positions] = new.transpose(1, 2)
        return stored[self._rows, :, : self._read]

    def _grown(self, stored: torch.Tensor | None, new: torch.Tensor) -> torch.Tensor:
        have = (0, 0) if stored is None else (stored.shape[0], stored.shape[2])
        need = (self._rows.stop, self._read)
        if stored is not None and have[0] >= need[0] and have[1] >= need[1]:
            return stored
        rows, positions = (h if h >= n else max(64, 1 << (n - 1).bit_length()) for h, n in zip(have, need, strict=True))
        grown = new.new_zeros(rows, new.shape[1], positions, new.shape[3])
        if stored is not None:
            grown[: have[0], :, : have[1]] = stored
        return grown
