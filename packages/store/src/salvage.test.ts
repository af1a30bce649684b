import { open, rm, truncate } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openRunStore } from './open-run-store.ts'
import { readRun } from './run-reader.ts'
import { episodeOf, runRequest, temporaryFolder, turnChain } from './testing/run-fixtures.ts'

/** Bytes of one rollout of three turns: the first holds 40 + 6 words, the others 3 + 6. */
const rolloutBytes = (46 + 9 + 9) * 4

/** A run of rollouts `1`, `2`, …, in which every second one ends a step. Steps in `checkpoints` have a checkpoint. */
async function madeRun({ rollouts = 8, checkpoints = [] as number[] } = {}) {
  const folder = await temporaryFolder()
  const path = join(folder.path, 'run')
  const store = await openRunStore({ path })
  for (let number = 1; number <= rollouts; number++) {
    const request = runRequest(`${number}`)
    await store.begin(request)
    for (const turn of turnChain(0, 3, number)) await store.appendTurn(`${number}`, 0, 'agent', turn)
    await store.finish(episodeOf(request, 0, turnChain(0, 3, number)))
    if (number % 2 === 1) continue
    const step = number / 2
    const checkpoint = checkpoints.includes(step) ? `checkpoints/${step}` : null
    const rollouts = [`${number - 1}`, `${number}`]
    const row = { agent: 'agent', trajectory: 'agent', step, turns: [0], tokens: 3, advantage: 1, reason: null, trainerLogprobs: null }
    const samples = rollouts.map((rollout) => ({ ...row, rollout }))
    await store.commitStep({ step, weightVersion: step, rollouts, metrics: {}, checkpoint }, samples)
  }
  await store.close()
  const segment = join(path, 'segments', '000001.bin')
  return { path, segment, [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose]() }
}

/** Changes a byte of the tokens of a rollout's last turn. */
async function damage(segment: string, rollout: number): Promise<void> {
  await using file = await open(segment, 'r+')
  await file.write('x', rollout * rolloutBytes - 4)
}

test('of a rollout that was trained before the last checkpoint the text stays, and its tokens are nobody’s', async () => {
  await using run = await madeRun({ checkpoints: [3] })
  await damage(run.segment, 3)
  const store = await openRunStore({ path: run.path })
  expect(store.damage).toContain('1 of 8 rollouts lost tokens (3)')
  expect(store.damage).toContain('It had been used before')
  expect(store.episode('3')).toBeNull()
  const kept = [...store.episodes()].map(({ rollout, messages, reward, trajectories }) => [
    rollout,
    messages.length,
    reward,
    trajectories[0]?.turns.length,
  ])
  expect(kept.slice(1, 4)).toEqual([
    ['2', 1, 1, 3],
    ['3', 1, 1, 0],
    ['4', 1, 1, 3],
  ])
  expect(store.steps().map(({ step, rollouts }) => [step, rollouts.length])).toEqual([1, 2, 3, 4].map((step) => [step, 2]))
  expect([...store.calls()].filter(({ isLost }) => isLost).map(({ key }) => key)).toEqual(['3'])
  await store.close()
  const again = await openRunStore({ path: run.path })
  expect(again.damage).toBeNull()
  await again.close()
})

test('a rollout that no step has trained runs again', async () => {
  await using run = await madeRun({ rollouts: 9, checkpoints: [4] })
  await damage(run.segment, 9)
  const store = await openRunStore({ path: run.path })
  expect(store.damage).toContain('1 of 9 rollouts lost tokens (9)')
  expect(store.damage).toContain('It runs again')
  expect(await store.begin(runRequest('9'))).toEqual({ attempt: 1, episode: null })
  const turns = turnChain(1, 3, 9)
  for (const turn of turns) await store.appendTurn('9', 1, 'agent', turn)
  await store.finish(episodeOf(runRequest('9'), 1, turns))
  expect(store.episode('9')?.trajectories[0]?.turns).toEqual(turns)
  await store.close()
  const reader = readRun(run.path)
  expect([...reader.episodes()]).toHaveLength(9)
  reader.close()
})

test('steps after the last checkpoint are taken back from the first that cannot be repeated, with what was sampled after it', async () => {
  await using run = await madeRun({ checkpoints: [1] })
  await damage(run.segment, 6)
  const store = await openRunStore({ path: run.path })
  expect(store.damage).toContain('goes on after step 2')
  expect(store.steps().map(({ step }) => step)).toEqual([1, 2])
  const results = ['1', '2', '3', '4', '5', '6', '7', '8'].map((key) => store.episode(key) !== null)
  expect(results).toEqual([true, true, true, true, true, false, false, false])
  expect([2, 3].map((step) => store.samples({ step }).length)).toEqual([2, 0])
  expect(store.rolloutRows({ status: 'interrupted' }).rows.map(({ key, finished, reward }) => [key, finished, reward])).toEqual(
    ['6', '7', '8'].map((key) => [key, null, null]),
  )
  expect(store.timesTakenBack()).toBe(1)
  await store.commitStep({ step: 3, weightVersion: 3, rollouts: ['5'], metrics: {}, checkpoint: null })
  await store.begin(runRequest('6'))
  await store.finish(episodeOf(runRequest('6'), 1, []))
  expect(store.rolloutRow('6')?.finished).toBe(9)
  await store.close()
})

test('steps are taken back from the one that trained a rollout of an earlier step, where that rollout is lost', async () => {
  await using folder = await temporaryFolder()
  const path = join(folder.path, 'run')
  const store = await openRunStore({ path })
  for (let number = 1; number <= 6; number++) {
    const request = runRequest(`${number}`)
    await store.begin(request)
    for (const turn of turnChain(0, 3, number)) await store.appendTurn(`${number}`, 0, 'agent', turn)
    await store.finish(episodeOf(request, 0, turnChain(0, 3, number)))
  }
  const trained = [
    ['2', '3'],
    ['4', '5'],
    ['1', '6'],
  ]
  for (const [index, rollouts] of trained.entries())
    await store.commitStep({
      step: index + 1,
      weightVersion: index + 1,
      rollouts,
      metrics: {},
      checkpoint: index === 0 ? 'checkpoints/1' : null,
    })
  await store.close()
  await damage(join(path, 'segments', '000001.bin'), 1)
  const again = await openRunStore({ path })
  expect(again.damage).toContain('goes on after step 2')
  expect(again.steps().map(({ step }) => step)).toEqual([1, 2])
  expect(['1', '2', '4', '6'].map((key) => again.episode(key) !== null)).toEqual([false, true, true, true])
  expect(await again.begin(runRequest('1'))).toEqual({ attempt: 1, episode: null })
  await again.close()
})

test.each([
  ['cut', (segment: string) => truncate(segment, 2 * rolloutBytes + 10)],
  ['missing', (segment: string) => rm(segment)],
])('a segment that is %s takes its own rollouts only, and is written again', async (what, change) => {
  await using run = await madeRun({ rollouts: 4, checkpoints: [2] })
  await change(run.segment)
  const store = await openRunStore({ path: run.path })
  expect(store.damage).toContain(what === 'cut' ? '2 of 4 rollouts lost tokens (3, 4)' : '4 of 4 rollouts lost tokens (1, 2, 3, 4)')
  const turns = turnChain(0, 3, 5)
  await store.begin(runRequest('5'))
  await store.finish(episodeOf(runRequest('5'), 0, turns))
  await store.close()
  const again = await openRunStore({ path: run.path })
  expect(again.damage).toBeNull()
  expect(again.episode('5')?.trajectories[0]?.turns).toEqual(turns)
  expect(again.episode('1') !== null).toBe(what === 'cut')
  await again.close()
})

test('tokens of an attempt without a result are no loss', async () => {
  await using run = await madeRun({ rollouts: 2, checkpoints: [1] })
  const store = await openRunStore({ path: run.path })
  await store.begin(runRequest('3'))
  for (const turn of turnChain(0, 3, 3)) await store.appendTurn('3', 0, 'agent', turn)
  await store.close()
  await damage(run.segment, 3)
  const again = await openRunStore({ path: run.path })
  expect(again.damage).toBeNull()
  expect(await again.begin(runRequest('3'))).toEqual({ attempt: 1, episode: null })
  await again.close()
})
