import { setTimeout as sleep } from 'node:timers/promises'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Agent, type AgentOptions } from './agent.ts'
import { runOnce, type TestRun } from './run-once.test-support.ts'
import { createScriptedServer, type ScriptedReply, type SeenRequest } from './scripted-server.test-support.ts'
import { HandoffSwarm, ParallelizableAgent, SerialableAgent, TeamSwarm } from './swarm/aworld-shapes.ts'
import { parallel, serial } from './swarm/group.ts'
import { LoopableAgent, type LoopableAgentOptions } from './swarm/loopable-agent.ts'
import type { AggregateFunction } from './swarm/swarm-types.ts'
import { Swarm } from './swarm.ts'

const agent = (name: string, options: AgentOptions = {}) => new Agent({ name, systemPrompt: name, ...options })
const loopable = (name: string, options: Omit<LoopableAgentOptions, 'name'>) => new LoopableAgent({ name, systemPrompt: name, ...options })

const who = ({ body }: SeenRequest) => String(body.messages[0]!['content'])
const lastText = ({ body }: SeenRequest) => String(body.messages.at(-1)!['content'])

/** Answers with the agent's name around what it was asked. */
const echo = (request: SeenRequest): ScriptedReply => ({ content: `${who(request)}(${lastText(request)})` })

const call = (name: string, content: string, id = 'c'): ScriptedReply => ({
  toolCalls: [{ id, name, arguments: JSON.stringify({ content }) }],
})

/** What started each invocation, by its id. */
function startsOf({ invocations }: TestRun): Record<string, (string | null)[]> {
  return Object.fromEntries(invocations.map(({ id, startedBy }) => [id, startedBy.map(({ trajectory }) => trajectory)]))
}

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

test('a handoff: the right agent is a tool of the left, and its answer returns', async () => {
  await using server = await createScriptedServer((request) => {
    if (who(request) !== 'triage') return echo(request)
    return request.body.messages.length === 2 ? call('refunds', 'money') : { content: `told: ${lastText(request)}` }
  })
  const [triage, refunds, sales] = [agent('triage'), agent('refunds', { desc: 'Gives money back.' }), agent('sales')]
  const result = await runOnce(new HandoffSwarm([triage, refunds], [triage, sales]), { baseUrl: server.baseUrl })
  expect(result.answer).toBe('told: refunds(money)')
  expect(startsOf(result)).toEqual({ triage: [], 'refunds:triage.0.0': ['triage'] })
  expect(server.requests[0]!.body.tools!.map((entry) => entry.function.name)).toEqual(['refunds', 'sales'])
  expect(server.requests[1]!.body.tools).toBeUndefined()
})

test('a handoff in a circle is bounded by endlessThreshold, which the model is told', async () => {
  const other = { a: 'b', b: 'a' } as Record<string, string>
  await using server = await createScriptedServer((request) =>
    request.body.messages.length === 2 ? call(other[who(request)]!, 'you') : { content: lastText(request) },
  )
  const [a, b] = [agent('a'), agent('b')]
  const run = (endlessThreshold?: number) => runOnce(new HandoffSwarm([a, b], [b, a], { endlessThreshold }), { baseUrl: server.baseUrl })
  const twice = await run(2)
  expect(twice.answer).toMatch(/^Error: "a" cannot be asked again here: it waits for this answer already, 2 times over/)
  expect(Object.keys(startsOf(twice))).toEqual(['a', 'b:a.0.0', 'a:b:a.0.0.0.0', 'b:a:b:a.0.0.0.0.0.0'])
  expect((await run()).invocations).toHaveLength(6)
})

test('a workflow that holds its caller is bounded by endlessThreshold', async () => {
  await using server = await createScriptedServer((request) =>
    who(request) === 'a' && request.body.messages.length === 2 ? call('steps', 'go') : { content: lastText(request) },
  )
  const a = agent('a')
  const swarm = new HandoffSwarm([a, new Swarm(a, agent('b'), { name: 'steps' })], { endlessThreshold: 2 })
  const result = await runOnce(swarm, { baseUrl: server.baseUrl })
  expect(result.answer).toMatch(/^Error: "steps" cannot be asked again here: it waits for this answer already, 2 times over/)
  expect(result.invocations.filter(({ agent: name }) => name === 'a')).toHaveLength(3)
})

test('a handoff to a stranger is an error that the model sees', async () => {
  await using server = await createScriptedServer((request) =>
    request.body.messages.length === 2 ? call('sales', 'buy') : { content: lastText(request) },
  )
  const result = await runOnce(new HandoffSwarm([agent('triage'), agent('refunds')]), { baseUrl: server.baseUrl })
  expect(result.answer).toMatch(/^Error: there is no tool "sales".*The tools are: refunds/)
})

test('calls that are nested too deep for a URL are refused to the model', async () => {
  const other = { a: 'b', b: 'a' } as Record<string, string>
  await using server = await createScriptedServer((request) =>
    request.body.messages.length === 2 ? call(other[who(request)]!, 'you') : { content: lastText(request) },
  )
  const [a, b] = [agent('a'), agent('b')]
  const swarm = new HandoffSwarm([a, b], [b, a], { endlessThreshold: 1000 })
  expect((await runOnce(swarm, { baseUrl: server.baseUrl })).answer).toMatch(/^Error: "[ab]" cannot be asked here: too many agents wait/)
})

test('the first agent of a team asks the others at least minCallNum times', async () => {
  await using server = await createScriptedServer((request) => {
    if (who(request) !== 'lead') return echo(request)
    const { length } = request.body.messages
    return length === 4 ? call('a', 'x') : length === 6 ? call('b', 'y') : { content: `after ${length}` }
  })
  const result = await runOnce(new TeamSwarm(agent('lead'), agent('a'), agent('b'), { minCallNum: 1 }), { baseUrl: server.baseUrl })
  expect(result.messages.filter(({ role }) => role === 'user').at(-1)!.content).toBe(
    'Ask the other agents before you answer, at least 1 times; so far it was 0.',
  )
  expect(Object.keys(startsOf(result))).toEqual(['lead', 'a:lead.1.0', 'b:lead.2.0'])
  expect(result.answer).toBe('after 8')
})

test('only calls that reach a member of the team count for minCallNum', async () => {
  await using server = await createScriptedServer((request) => {
    if (who(request) !== 'lead') return echo(request)
    const { length } = request.body.messages
    if (length === 2) return { toolCalls: [{ id: 'c', name: 'a', arguments: '{}' }] }
    return length === 6 ? call('helper', 'x') : length === 10 ? call('a', 'y') : { content: `after ${length}` }
  })
  const team = new TeamSwarm(agent('lead', { agents: [agent('helper')] }), agent('a'), { minCallNum: 1 })
  const result = await runOnce(team, { baseUrl: server.baseUrl })
  const reminder = 'Ask the other agents before you answer, at least 1 times; so far it was 0.'
  expect(result.messages.filter(({ role }) => role === 'user').map(({ content }) => content)).toEqual([
    'What is 1 + 2?',
    reminder,
    reminder,
  ])
  expect(result.answer).toBe('after 12')
})

test('a member of a team that asks another one need not ask as often as the first', async () => {
  await using server = await createScriptedServer((request) => {
    const { length } = request.body.messages
    if (who(request) === 'lead' && length < 6) return call('b', 'x')
    return who(request) === 'b' && length === 2 ? call('c', 'y') : { content: `after ${length}` }
  })
  const result = await runOnce(new TeamSwarm(agent('lead'), [agent('b'), agent('c')], { minCallNum: 2 }), { baseUrl: server.baseUrl })
  expect(result.answer).toBe('after 6')
  expect(server.requests.filter((request) => who(request) === 'b')).toHaveLength(4)
})

test('the limits of a team hold for a member that its first agent declares too', async () => {
  await using server = await createScriptedServer((request) => {
    if (who(request) !== 'lead') return echo(request)
    return [4, 6].includes(request.body.messages.length) ? call('a', 'x') : { content: lastText(request) }
  })
  const member = agent('a')
  const team = new TeamSwarm(agent('lead', { agents: [member] }), member, { minCallNum: 1, maxSteps: 2 })
  const result = await runOnce(team, { baseUrl: server.baseUrl })
  expect(result.answer).toBe('Error: the agents may start 2 times, and have; answer with what you know.')
  expect(Object.keys(startsOf(result))).toEqual(['lead', 'a:lead.1.0'])
})

test('maxSteps of a team counts all starts of its agents, and the model is told', async () => {
  await using server = await createScriptedServer((request) => {
    if (who(request) !== 'lead') return echo(request)
    return request.body.messages.length === 2
      ? { toolCalls: ['1', '2', '3'].map((id) => ({ id, name: 'a', arguments: '{"content":"x"}' })) }
      : {
          content: request.body.messages
            .slice(3)
            .map(({ content }) => content)
            .join('|'),
        }
  })
  const result = await runOnce(new TeamSwarm(agent('lead'), agent('a'), { maxSteps: 3 }), { baseUrl: server.baseUrl })
  expect(result.answer).toBe('a(x)|a(x)|Error: the agents may start 3 times, and have; answer with what you know.')
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
