import { expect, test } from 'vitest'
import { runOnce } from './run-once.test-support.ts'
import { createScriptedServer } from './scripted-server.test-support.ts'
import { HandoffSwarm, TeamSwarm } from './swarm/aworld-shapes.ts'
import { Swarm } from './swarm.ts'
import { agent, call, echo, lastText, startsOf, who } from './swarm-runs.test-support.ts'

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
