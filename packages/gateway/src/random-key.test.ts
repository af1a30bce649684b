import { expect, test } from 'vitest'
import { promptNumber, toRandomKey } from './random-key.ts'

const agents = [{ name: 'agent', trainable: true }]
const agent = { id: 'agent', name: 'agent' }
const request = (seed: number) => ({
  rollout: 'r',
  attempt: 0,
  taskId: 'task',
  sample: 2,
  policy: 'local',
  sampling: { temperature: 1, topP: 1, topK: 0, maxTokens: 1, stop: [], seed },
  agents,
})

test('the key does not depend on rollout or attempt: a repeated attempt draws the same', () => {
  const key = toRandomKey(7, request(0), agent, 3)
  expect(key).toEqual({ seed: 7, task: 'task', sample: 2, turn: 3 })
  expect(toRandomKey(7, { ...request(0), rollout: 'other', attempt: 4 }, agent, 3)).toEqual(key)
})

test('invocations of an agent draw differently, also where it is the only one', () => {
  const of = (id: string, names = agents) => toRandomKey(7, { ...request(0), agents: names }, { id, name: 'agent' }, 0).task
  expect([of('agent'), of('agent:2'), of('agent:agent.0.1')]).toEqual(['task', 'task\nagent:2', 'task\nagent:agent.0.1'])
  expect(of('agent', [...agents, { name: 'other', trainable: true }])).toBe('task\nagent')
})

test('seeds of run and sampling do not add up to one another', () => {
  const seeds = new Set<number>()
  for (let run = 0; run < 50; run++) for (let step = 1; step < 50; step++) seeds.add(toRandomKey(run, request(step), agent, 0).seed)
  expect(seeds.size).toBe(50 * 49)
  for (const seed of seeds) expect(Number.isInteger(seed) && seed >= 0 && seed < 2 ** 32).toBe(true)
})

test('a prompt has the same number wherever its ids lie, and another one each time it is asked', () => {
  const counts = new Map<number, number>()
  const first = promptNumber(Int32Array.of(1, 2, 3), counts)
  expect(promptNumber(Int32Array.of(0, 1, 2, 3).subarray(1), counts)).toBe(first + 1)
  expect(promptNumber(Int32Array.of(1, 2, 3), new Map())).toBe(first)
  expect(promptNumber(Int32Array.of(1, 2), counts)).not.toBe(first)
  expect(first).toBeLessThan(2 ** 48)
})
