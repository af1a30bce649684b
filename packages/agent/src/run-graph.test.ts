import { setTimeout as sleep } from 'node:timers/promises'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { runOnce } from './run-once.test-support.ts'
import { createScriptedServer } from './scripted-server.test-support.ts'
import { ParallelizableAgent, SerialableAgent, TeamSwarm } from './swarm/aworld-shapes.ts'
import { parallel, serial } from './swarm/group.ts'
import { Swarm } from './swarm.ts'
import { agent, call, echo, lastText, loopable, startsOf, who } from './swarm-runs.test-support.ts'

test("the seeds' swarm: an agent waits for both before it, and gets their answers in the order of the edges", async () => {
  await using server = await createScriptedServer(echo)
  const [one, two, three] = [agent('one'), agent('two'), agent('three')]
  const swarm = new Swarm(
    [
      [one, three],
      [two, three],
    ],
    { root_agent: [one, two] },
  )
  const result = await runOnce(swarm, { baseUrl: server.baseUrl, input: 'q' })
  expect(result.answer).toBe('three({"one":"one(q)","two":"two(q)"})')
  expect(startsOf(result)).toEqual({ one: [], two: [], three: ['one', 'two'] })
  expect(result.messages.filter(({ role }) => role === 'assistant').map(({ content }) => content)).toEqual([
    'one(q)',
    'two(q)',
    result.answer,
  ])
})

test.each([
  [
    'groups',
    () => new Swarm(agent('a'), parallel(agent('b'), serial(agent('c'), agent('d'))), agent('e')),
    'e({"b":"b(a(q))","d":"d(c(a(q)))"})',
  ],
  [
    'a swarm in a swarm',
    () => new Swarm(agent('a'), new Swarm(parallel(agent('b'), agent('c')), agent('d')), agent('e')),
    'e(d({"b":"b(a(q))","c":"c(a(q))"}))',
  ],
  [
    'one agent twice',
    () => {
      const a = agent('a')
      return new Swarm(a, agent('b'), a)
    },
    'a(b(a(q)))',
  ],
  [
    'one agent side by side with itself',
    () => {
      const a = agent('a')
      return new Swarm(parallel(a, a), agent('b'))
    },
    'b({"a":"a(q)","a:2":"a(q)"})',
  ],
  ['agents with numbers as names', () => new Swarm(parallel(agent('2'), agent('1')), agent('b')), 'b({"2":"2(q)","1":"1(q)"})'],
  [
    'ParallelizableAgent',
    () => new Swarm(new ParallelizableAgent({ agents: [agent('a'), agent('b')] }), agent('c')),
    'c({"a":"a(q)","b":"b(q)"})',
  ],
  [
    'ParallelizableAgent of agents with numbers as names',
    () => new ParallelizableAgent({ agents: [agent('2'), agent('1')] }),
    '{"2":"2(q)","1":"1(q)"}',
  ],
  ['SerialableAgent', () => new SerialableAgent({ agents: [agent('a'), agent('b')] }), 'b(a(q))'],
  [
    'an aggregate function',
    () =>
      new ParallelizableAgent({
        name: 'both',
        agents: [agent('a'), agent('b')],
        aggregateFunc: (swarm, { a, b }) => `${swarm.name}: ${a} + ${b}`,
      }),
    'both: a(q) + b(q)',
  ],
  [
    'an aggregate function of a series',
    () => new SerialableAgent({ agents: [agent('a'), agent('b')], aggregate_func: async (_, results) => Object.keys(results).join() }),
    'a,b',
  ],
  [
    'an aggregate function of a swarm',
    () => new Swarm(parallel(agent('a'), agent('b')), { aggregateFunc: (_, results) => JSON.stringify(results) }),
    '{"a":"a(q)","b":"b(q)"}',
  ],
  [
    'an edge that is not followed',
    () => {
      const [a, b, c] = [agent('a'), agent('b'), agent('c')]
      return new Swarm([a, b, { condition: (text) => text === '' }], [a, c], [b, c])
    },
    'c({"a":"a(q)"})',
  ],
  ['an edge that is followed', () => new Swarm([agent('a'), agent('b'), { condition: async (text) => text === 'a(q)' }]), 'b(a(q))'],
  ['a LoopableAgent', () => loopable('a', { maxRunTimes: 3 }), 'a(a(a(q)))'],
  [
    'a loop over the agents before it',
    () => new Swarm(agent('z'), agent('a'), agent('b'), loopable('c', { max_run_times: 2, loop_point: 'a' }), agent('d')),
    'd(c(b(a(c(b(a(z(q))))))))',
  ],
  [
    'a loop that stops',
    () => loopable('a', { maxRunTimes: 9, stopFunc: (_, { answer, runTimes }) => runTimes === 2 && answer === 'a(a(q))' }),
    'a(a(q))',
  ],
  [
    'a loop that finds its point',
    () =>
      new Swarm(
        agent('a'),
        agent('b'),
        loopable('c', { maxRunTimes: 3, loopPointFinder: (_, { runTimes }) => (runTimes === 1 ? 'b' : 'a') }),
      ),
    'c(b(a(c(b(c(b(a(q))))))))',
  ],
  [
    'a loop in a loop',
    () => new Swarm(agent('a'), loopable('b', { maxRunTimes: 2 }), loopable('c', { maxRunTimes: 2, loopPoint: 'a' })),
    'c(b(b(a(c(b(b(a(q))))))))',
  ],
  [
    'a branch out of a loop, which waits for its end',
    () => {
      const [a, b, c] = [agent('a'), agent('b'), agent('c')]
      const loop = loopable('l', { maxRunTimes: 2, loopPoint: 'a' })
      return new Swarm([a, loop], [a, b], [loop, c], [b, c])
    },
    'c({"l":"l(a(l(a(q))))","b":"b(a(l(a(q))))"})',
  ],
])('%s', async (_, build, answer) => {
  await using server = await createScriptedServer(echo)
  expect((await runOnce(build(), { baseUrl: server.baseUrl, input: 'q' })).answer).toBe(answer)
})

test('starts of one agent are numbered by their place in the graph, and each has a URL', async () => {
  await using server = await createScriptedServer(echo)
  const a = agent('a')
  const swarm = new Swarm(a, new Swarm(a, agent('b')), loopable('c', { maxRunTimes: 2, loopPoint: 'b' }))
  const result = await runOnce(swarm, { baseUrl: server.baseUrl.replace('/v1', '/r/secret/v1'), input: 'q' })
  expect(startsOf(result)).toEqual({ a: [], 'a:2': ['a'], b: ['a:2'], c: ['b'], 'b:2': ['c'], 'c:2': ['b:2'] })
  expect(server.requests.map(({ url }) => /secret(.*)\/v1/.exec(url)?.[1])).toEqual(['', '/~2', '', '', '/~2', '/~2'])
})

test('a swarm is a tool of an agent, and its agents are named by the call', async () => {
  await using server = await createScriptedServer((request) => {
    if (who(request) !== 'lead') return echo(request)
    return request.body.messages.length === 2 ? call('steps', 'go') : { content: `it is ${lastText(request)}` }
  })
  const a = agent('a')
  const steps = new Swarm(a, agent('b'), a, { name: 'steps', desc: 'Takes steps.' })
  const result = await runOnce(agent('lead', { agents: [steps] }), { baseUrl: server.baseUrl, input: 'q' })
  expect(result.answer).toBe('it is a(b(a(go)))')
  expect(startsOf(result)).toEqual({ lead: [], 'a:lead.0.0': ['lead'], 'b:lead.0.0': ['a:lead.0.0'], 'a:lead.0.0-2': ['b:lead.0.0'] })
  expect(server.requests[0]!.body.tools).toMatchObject([{ function: { name: 'steps', description: 'Takes steps.' } }])
  expect(result.messages.map(({ role }) => role)).toEqual(['system', 'user', 'assistant', 'tool', 'assistant'])
})

test('a node without an answer ends what follows it with its stop reason, while the others come to their end', async () => {
  await using server = await createScriptedServer((request) => (who(request) === 'a' ? call('x', '') : echo(request)))
  const [a, b, c, d] = [agent('a', { maxTurns: 2 }), agent('b'), agent('c'), agent('d')]
  const result = await runOnce(
    new Swarm([
      [a, d],
      [b, c],
      [c, d],
    ]),
    { baseUrl: server.baseUrl, input: 'q' },
  )
  expect(result).toMatchObject({ answer: null, stopped: 'turn-limit' })
  expect(startsOf(result)).toEqual({ a: [], b: [], c: ['b'] })
  expect(result.invocations.map(({ id, answered }) => [id, answered])).toEqual([
    ['a', false],
    ['b', true],
    ['c', true],
  ])
})

test('a swarm that no edge leads on in has no answer, and is not stopped', async () => {
  await using server = await createScriptedServer(echo)
  const swarm = new Swarm([agent('a'), agent('b'), { condition: () => false }])
  const result = await runOnce(swarm, { baseUrl: server.baseUrl })
  expect(result.answer).toBeNull()
  expect(result.stopped).toBeUndefined()
  expect(server.requests).toHaveLength(1)
})

test('a team and a handoff are nodes of a workflow', async () => {
  await using server = await createScriptedServer((request) => {
    if (who(request) === 'lead' && request.body.messages.length === 2) return call('helper', 'x')
    return echo(request)
  })
  const swarm = new Swarm(agent('a'), new TeamSwarm(agent('lead'), agent('helper')), agent('z'))
  expect((await runOnce(swarm, { baseUrl: server.baseUrl, input: 'q' })).answer).toBe('z(lead(helper(x)))')
})

test('the same seed gives the same record, however long each call takes', async () => {
  await using server = await createScriptedServer((request) => {
    if (who(request) === 'helper' || who(request) === 'c') return echo(request)
    return request.body.messages.length === 2
      ? {
          toolCalls: ['same', 'same', 'other'].map((content, id) => ({
            id: `${id}`,
            name: 'helper',
            arguments: JSON.stringify({ content }),
          })),
        }
      : {
          content: request.body.messages
            .slice(3)
            .map(({ content }) => content)
            .join(),
        }
  })
  const hooks = { beforeModel: async () => void (await sleep(Math.random() * 10)) }
  const helper = agent('helper', { hooks })
  const [a, b, c] = [agent('a', { hooks, agents: [helper] }), agent('b', { hooks, agents: [helper] }), agent('c', { hooks })]
  const records = new Set<string>()
  for (let run = 0; run < 20; run += 1) {
    const { answer, messages, invocations } = await runOnce(
      new Swarm([
        [a, c],
        [b, c],
      ]),
      { baseUrl: server.baseUrl },
    )
    const started = invocations.map(({ id, startedBy }) => ({ id, startedBy })).sort((x, y) => (x.id < y.id ? -1 : 1))
    records.add(JSON.stringify({ answer, messages, started }))
  }
  expect(records.size).toBe(1)
  expect(server.requests).toHaveLength(20 * 11)
})

test('any graph of up to eight nodes runs each once, after its predecessors', async () => {
  await using server = await createScriptedServer(echo)
  const graphs = fc.integer({ min: 2, max: 8 }).chain((size) =>
    fc.record({
      size: fc.constant(size),
      pairs: fc.uniqueArray(fc.tuple(fc.nat(size - 1), fc.nat(size - 1)), { selector: ([from, to]) => `${from},${to}` }),
      delays: fc.array(fc.nat(8), { minLength: size, maxLength: size }),
    }),
  )
  await fc.assert(
    fc.asyncProperty(graphs, async ({ size, pairs, delays }) => {
      const log: string[] = []
      const hooks = (index: number) => ({
        beforeModel: async () => {
          log.push(`start ${index}`)
          await sleep(delays[index])
        },
        afterModel: () => void log.push(`end ${index}`),
      })
      const agents = Array.from({ length: size }, (_, index) => agent(`n${index}`, { hooks: hooks(index) }))
      const forward = pairs.map(([x, y]) => [Math.min(x, y), Math.max(x, y)] as const).filter(([x, y]) => x !== y)
      const inner = [...new Map(forward.map((edge) => [`${edge}`, edge])).values()]
      const ends = agents.map((_, index) => index).filter((index) => index < size - 1 && !inner.some(([from]) => from === index))
      const edges = [...inner, ...ends.map((index) => [index, size - 1] as const)]
      const result = await runOnce(new Swarm(edges.map(([from, to]) => [agents[from]!, agents[to]!] as const)), { baseUrl: server.baseUrl })
      expect(log.filter((line) => line.startsWith('start')).sort()).toEqual(agents.map((_, index) => `start ${index}`))
      for (const [from, to] of edges) expect(log.indexOf(`end ${from}`)).toBeLessThan(log.indexOf(`start ${to}`))
      const before = (index: number) => edges.filter(([, to]) => to === index).map(([from]) => `n${from}`)
      expect(startsOf(result)).toEqual(Object.fromEntries(agents.map(({ name }, index) => [name, before(index)])))
      expect(result.invocations.every(({ answered }) => answered)).toBe(true)
    }),
    { numRuns: 40 },
  )
})
