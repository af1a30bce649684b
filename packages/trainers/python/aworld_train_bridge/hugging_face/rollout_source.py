"""Tasks by their ids, and the rows of their rollouts: what a trainer that asks for completions of prompts is answered with."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any, Mapping, Sequence

from ..shared.batch_accounts import BatchAccounts
from ..shared.rollouts import Outcome, Rollouts, Submission
from ..shared.rows import Row
from ..shared.tasks import Tasks
from ..shared.unscored import evaluated, is_unscored
from ..errors import RunError

REPLACEMENTS = 2
"""How often a failed rollout is begun again before its place in the batch stays empty."""


class RolloutSource:
    """Turns ids of tasks into rows. Failed rollouts are begun again; what fails still is a row without a reward, of which nothing is trained."""

    def __init__(self, rollouts: Rollouts, accounts: BatchAccounts, train: Tasks, test: Tasks | None, *, sampling: Mapping[str, Any], filler: int) -> None:
        self._rollouts, self._accounts, self._train, self._test = rollouts, accounts, train, test
        self._sampling, self._filler = sampling, filler  # `filler` is an id of the vocabulary
        self._step = -1
        self._taken: Counter[str] = Counter()
        self.seconds = 0.0
        self._replaced = 0

    def rows(self, ids: Sequence[str], step: int, process: int = 0) -> list[Row]:
        """A row for each id, which stands there once for each of its generations; handed over to the accounts of the batch.

        A rollout that failed is a row with `reward` None, of one token of prompt and one of response with mask 0. Raises
        TRAINER_EMPTY_BATCH where all failed.
        """
        started = time.perf_counter()
        outcomes = self._gather(ids, step, process * len(ids) * (1 + REPLACEMENTS))
        if all(outcome.error for outcome in outcomes):
            error = outcomes[0].error
            raise RunError("TRAINER_EMPTY_BATCH", f"All {len(outcomes)} rollouts of step {step} failed, the first with {error}; nothing was trained.")
        rows = [(outcome.key, outcome.rows[-1]) if outcome.error is None else (None, self._empty()) for outcome in outcomes]
        if (several := max(len(outcome.rows) for outcome in outcomes)) > 1:
            raise RunError("CONFIG_INVALID", f"A rollout came with {several} rows, and the trainer takes one; set rows to last or longest.")
        self._accounts.hand_over(rows)
        self.seconds += time.perf_counter() - started
        return [row for _, row in rows]

    def evaluate(self, step: int, samples: int, sampling: Mapping[str, Any]) -> dict[str, float]:
        """Mean reward of all held-out tasks, each `samples` times; a rollout that failed counts as 0, one from which the reward abstained not at all."""
        assert self._test is not None
        started = time.perf_counter()
        outcomes = self._rollouts.run(
            [Submission("val", step, id, sample, row, sampling) for id, row in self._test.items() for sample in range(samples)]
        )
        return {**evaluated(outcomes), "timing_s/evaluation": time.perf_counter() - started}

    def take_replaced(self) -> int:
        """Rollouts that were begun again since this was last asked."""
        replaced, self._replaced = self._replaced, 0
        return replaced

    def _gather(self, ids: Sequence[str], step: int, first: int) -> list[Outcome]:
        if step != self._step:
            self._step, self._taken = step, Counter()
        outcomes: list[Outcome | None] = [None] * len(ids)
        missing = list(range(len(ids)))
        for round in range(1 + REPLACEMENTS):
            submissions = [self._submission(ids[index], step, first) for index in missing]
            for index, outcome in zip(missing, self._rollouts.run(submissions), strict=True):
                outcomes[index] = outcome
            missing = [index for index in missing if (error := outcomes[index].error) is not None and not is_unscored(error)]  # type: ignore[union-attr]
            if not missing:
                break
            if round < REPLACEMENTS:
                self._replaced += len(missing)
        return outcomes  # type: ignore[return-value]

    def _submission(self, id: str, step: int, first: int) -> Submission:
        sample = first + self._taken[id]
        self._taken[id] += 1
        return Submission("train", step, id, sample, self._train[id], self._sampling)

    def _empty(self) -> Row:
        """Trainers read the ids of every place in the batch, so that an empty one has some, which are not trained."""
        return Row("", [self._filler], [self._filler], [0], [0.0], None, None, None)
