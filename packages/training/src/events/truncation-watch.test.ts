import type { RunEvent, StopReason } from '@aworld-train/core'
import { expect, it } from 'vitest'
import { watchTruncation } from './truncation-watch.ts'

/** Codes and messages of the warnings of a run with these steps. A step is the list of ends of its rollouts. */
function warningsOf(steps: readonly (readonly StopReason[])[], split = 'train'): string[] {
  const seen: RunEvent[] = []
  const emit = watchTruncation((event) => seen.push(event), 'Raise it.')
  for (const [index, ends] of steps.entries()) {
    for (const stopReason of ends)
      emit({
        type: 'rollout-end',
        at: 0,
        rollout: 'a',
        attempt: 0,
        split,
        taskId: 'a',
        stopReason,
        reward: 0,
        turns: 1,
        toolCalls: 0,
        sampledTokens: 1,
        durationMs: 1,
      })
    emit({ type: 'step-end', at: 0, step: index + 1, steps: steps.length, weightVersion: 1, metrics: {} })
  }
  return seen.flatMap((event) => (event.type === 'warning-raised' ? [`${event.code}: ${event.message}`] : []))
}

it('warns once, of the first step in which most rollouts were cut by length', () => {
  const cut = ['truncated', 'truncated', 'completed'] as const
  expect(warningsOf([['completed', 'truncated'], cut, cut])).toEqual([
    expect.stringMatching(/^ROLLOUTS_TRUNCATED: 2 of 3 rollouts of step 2 were cut by length.* Raise it\.$/),
  ])
})

it('does not warn of half, of other ends, of evaluations, or of two steps together', () => {
  expect(warningsOf([['truncated', 'completed'], ['truncated', 'failed'], ['turn-limit'], []])).toEqual([])
  expect(warningsOf([['truncated']], 'test')).toEqual([])
})
