import type { EvaluationRow } from '@aworld-train/core'
import { expect, it } from 'vitest'
import { compareEvaluations } from './compare.ts'
import { type EvaluatedEpisode, type EvaluationRollout, summarizeRollouts } from './summarize.ts'

const repetitions = 2_000
const samples = 4

/** Tasks that a model mostly knows or mostly does not: the chance to be right is at most `doubt` away from one or from zero. */
const [shareOfEasy, doubt] = [0.55, 0.3]
/** What a better model gets right of what the other gets wrong. */
const gain = 0.3

/** The chance that one of k samples is right: 1 - (1 - p)^k, integrated over the chances of tasks. */
const passAt = (k: number) =>
  1 - (shareOfEasy * doubt ** k) / (k + 1) - ((1 - shareOfEasy) * (1 - (1 - doubt) ** (k + 1))) / ((k + 1) * doubt)

/** Mulberry32 (public domain, Tommy Ettinger): numbers in [0, 1) from a seed. */
function randomNumbers(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let value = Math.imul(state ^ (state >>> 15), 1 | state)
    value = (value + Math.imul(value ^ (value >>> 7), 61 | value)) ^ value
    return ((value ^ (value >>> 14)) >>> 0) / 2 ** 32
  }
}

const episodeOf = (reward: number): EvaluatedEpisode => ({
  rollout: 'r',
  attempt: 0,
  answer: null,
  reward,
  scores: {},
  stopReason: 'completed',
  timing: { startedAt: 0, endedAt: 0 } as EvaluatedEpisode['timing'],
  trajectories: [],
  toolCalls: [],
})
const [wrong, right] = [episodeOf(0), episodeOf(1)]

interface DrawnTask {
  readonly task: { readonly id: string; readonly hash: string }
  readonly kind: string
  readonly chance: number
}

const drawTasks = (count: number, random: () => number): DrawnTask[] =>
  Array.from({ length: count }, (_, index) => ({
    task: { id: String(index), hash: String(index) },
    kind: index % 2 === 0 ? 'even' : 'odd',
    chance: random() < shareOfEasy ? 1 - doubt * random() : doubt * random(),
  }))

const drawRollouts = (tasks: readonly DrawnTask[], random: () => number): EvaluationRollout[] =>
  tasks.flatMap(({ task, kind, chance }) =>
    Array.from({ length: samples }, (_, sample) => ({ task, kind, rollout: 'r', sample, episode: random() < chance ? right : wrong })),
  )

const finished = (rollouts: readonly EvaluationRollout[]) => ({
  report: { path: 'run', model: 'm', startedAt: 0, reward: 1, scored: { tasks: 1, rollouts: 1 } },
  rows: rollouts.map(({ task, episode }) => ({ taskId: task.id, taskHash: task.hash, reward: episode!.reward }) as EvaluationRow),
  inputs: {},
})

it.each([26, 60, 165])('every interval of an evaluation of %i tasks holds the truth in 93 to 97 of 100 cases', (count) => {
  const random = randomNumbers(count)
  const covered = new Map<string, number>()
  const note = (name: string, [low, high]: readonly [number, number], truth: number) =>
    covered.set(name, (covered.get(name) ?? 0) + Number(low <= truth && truth <= high))
  for (let repetition = 0; repetition < repetitions; repetition += 1) {
    const tasks = drawTasks(count, random)
    const rollouts = drawRollouts(tasks, random)
    const { interval, passAtK, byKind } = summarizeRollouts(rollouts, { answers: new Map(), hasPrice: true })
    note('reward', interval!, passAt(1))
    for (const k of [1, 2, 4]) note(`pass@${k}`, passAtK[k]!.interval, passAt(k))
    for (const [kind, mean] of Object.entries(byKind)) note(kind, mean.interval, passAt(1))
    const differenceTo = (other: readonly EvaluationRollout[]) =>
      compareEvaluations(finished(other), finished(rollouts)).difference.interval
    note('difference to an equal model', differenceTo(drawRollouts(tasks, random)), 0)
    const better = tasks.map((task) => ({ ...task, chance: task.chance + gain * (1 - task.chance) }))
    note('difference to a better model', differenceTo(drawRollouts(better, random)), gain * (1 - passAt(1)))
  }
  for (const [name, times] of covered) {
    expect(times / repetitions, name).toBeGreaterThanOrEqual(0.93)
    expect(times / repetitions, name).toBeLessThanOrEqual(0.97)
  }
})
