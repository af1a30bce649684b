import { expect, test } from 'vitest'
import { runOnce } from './run-once.test-support.ts'
import { createScriptedServer } from './scripted-server.test-support.ts'
import { ParallelizableAgent } from './swarm/aworld-shapes.ts'
import { parallel } from './swarm/group.ts'
import type { AggregateFunction } from './swarm/swarm-types.ts'
import { Swarm } from './swarm.ts'
import { agent, echo, loopable, who } from './swarm-runs.test-support.ts'

test('a member that fails aborts its siblings; its error text is nobody’s input, and the conversations so far are kept', async () => {
  const begun = Promise.withResolvers<void>()
  await using server = await createScriptedServer((request) => {
    if (who(request) === 'failing') return { status: 400, error: { message: 'it broke' } }
    begun.resolve()
    return 'hang'
  })
  const failing = agent('failing', { hooks: { beforeModel: () => begun.promise.then(() => undefined) }, conf: { maxRetries: 0 } })
  const swarm = new Swarm(parallel(failing, agent('hanging')), agent('after'))
  await expect(runOnce(swarm, { baseUrl: server.baseUrl })).rejects.toThrow('it broke')
  await server.hungUp
  expect(server.requests.map(who).sort()).toEqual(['failing', 'hanging'])
})

test('a member that hangs before a barrier ends with the task', async () => {
  const stop = new AbortController()
  await using server = await createScriptedServer((request) => {
    if (who(request) !== 'hanging') return echo(request)
    stop.abort(new Error('the time is over'))
    return 'hang'
  })
  const swarm = new Swarm(parallel(agent('quick'), agent('hanging')), agent('after'))
  await expect(runOnce(swarm, { baseUrl: server.baseUrl, signal: stop.signal })).rejects.toThrow('the time is over')
  await server.hungUp
  expect(server.requests.map(who)).not.toContain('after')
})

const aggregated = (aggregateFunc: unknown) =>
  new ParallelizableAgent({ name: 'both', agents: [agent('a'), agent('b')], aggregateFunc: aggregateFunc as AggregateFunction })
const thrower = () => {
  throw new Error('no sum')
}

test.each([
  ['an aggregate function that throws', () => aggregated(thrower), 'The aggregate function of "both" threw: no sum'],
  [
    'an aggregate function that returns a number',
    () => aggregated(() => 3),
    'The aggregate function of "both" returned number 3; return a text.',
  ],
  [
    'a condition that throws',
    () => new Swarm([agent('a'), agent('b'), { condition: thrower }]),
    'The condition of the edge after "a" threw: no sum',
  ],
  [
    'a condition that returns a text',
    () => new Swarm([agent('a'), agent('b'), { condition: (() => 'yes') as never }]),
    'The condition of the edge after "a" returned "yes"; return true or false.',
  ],
  ['a stop function that throws', () => loopable('a', { maxRunTimes: 2, stopFunc: thrower }), 'The stop function of "a" threw: no sum'],
  [
    'a stop function that returns nothing',
    () => loopable('a', { maxRunTimes: 2, stopFunc: (() => undefined) as never }),
    'The stop function of "a" returned undefined; return true or false.',
  ],
  [
    'a loop point that is no agent',
    () => loopable('a', { maxRunTimes: 2, loopPointFinder: () => 'b' }),
    'The loop point finder of "a" returned "b", which is no agent at or before "a"',
  ],
])('%s fails the swarm by name', async (_, build, message) => {
  await using server = await createScriptedServer(echo)
  await expect(runOnce(build(), { baseUrl: server.baseUrl })).rejects.toMatchObject({
    code: 'AGENT_FAILED',
    message: expect.stringContaining(message),
  })
})

test.each([
  ['an aggregate function', (hang: () => Promise<never>) => aggregated(hang)],
  ['a condition', (hang: () => Promise<never>) => new Swarm([agent('a'), agent('b'), { condition: hang }])],
  ['a stop function', (hang: () => Promise<never>) => loopable('a', { maxRunTimes: 2, stopFunc: hang })],
])('%s that never returns ends with the task', async (_, build) => {
  await using server = await createScriptedServer(echo)
  const stop = new AbortController()
  const hang = () => {
    stop.abort(new Error('the time is over'))
    return new Promise<never>(() => {})
  }
  await expect(runOnce(build(hang), { baseUrl: server.baseUrl, signal: stop.signal })).rejects.toThrow('the time is over')
})

test('nodes that wait for each other end with the task', async () => {
  const swarm = new Swarm(parallel(agent('a'), agent('b')), agent('c'))
  const [a, b] = swarm.graph.nodes
  a!.after = [b!]
  b!.after = [a!]
  await expect(runOnce(swarm, { signal: AbortSignal.timeout(20) })).rejects.toThrow('aborted due to timeout')
})

test('maxSteps ends a loop, and a workflow that is longer', async () => {
  await using server = await createScriptedServer(echo)
  const loop = loopable('a', { maxRunTimes: 1_000_000 })
  expect(await runOnce(new Swarm(loop, agent('b'), { maxSteps: 5 }), { baseUrl: server.baseUrl })).toMatchObject({
    answer: null,
    stopped: 'turn-limit',
  })
  expect(server.requests.map(who)).toEqual(['a', 'a', 'a', 'a', 'a'])
  const inner = new Swarm(agent('b'), agent('c'), { max_steps: 1 })
  expect(await runOnce(new Swarm(agent('a'), inner, agent('d')), { baseUrl: server.baseUrl })).toMatchObject({
    answer: null,
    stopped: 'turn-limit',
  })
  expect(server.requests.slice(5).map(who)).toEqual(['a', 'b'])
})
