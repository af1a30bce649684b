import { expect, it } from 'vitest'
import type { GatewayCounts } from '../contracts/index.ts'
import type { Trajectory } from '../protocol/episode.ts'
import type { Message } from '../protocol/message.ts'
import type { Turn } from '../protocol/turn.ts'
import { createTokenReport, tokenReport } from './token-report.ts'

const user = (content: string): Message => ({ role: 'user', content })
const turn = (changes: Partial<Turn>) =>
  ({ parent: null, branchReasons: [], delivered: 'delivered', messagesDelta: [], ...changes }) as Partial<Turn> as Turn
const trajectory = (...turns: Turn[]): Trajectory => ({
  version: 2,
  id: 'agent',
  agent: 'agent',
  policy: 'local',
  trainable: true,
  startedBy: [],
  timing: null,
  turns,
})
const root = turn({ branchReasons: ['root'], messagesDelta: [user('Gold?')] })
const next = turn({ parent: 0, messagesDelta: [user('Iron?')] })

it('counts roots, continuations and branches by reason', () => {
  const report = tokenReport([
    trajectory(root, next, turn({ branchReasons: ['no-match'], messagesDelta: [user('Other.')] })),
    trajectory(root, turn({ branchReasons: ['prefix', 'order'], messagesDelta: [user('More.')] })),
  ])
  expect(report).toEqual({
    version: 1,
    turns: 5,
    continuations: 1,
    roots: 2,
    branches: { 'no-match': 1, prefix: 1, order: 1 },
    repeated: 0,
    abandoned: 0,
    failed: 0,
    tolerated: {},
    unparsed: {},
    ignored: {},
    frozen: {},
  })
})

it('says of a call that began anew whether its system prompt was another', () => {
  const asks = (system: string, question: string) => [{ role: 'system' as const, content: system }, user(question)]
  const anew = (system: string, question: string) => turn({ branchReasons: ['no-match'], messagesDelta: asks(system, question) })
  const first = turn({ branchReasons: ['root'], messagesDelta: asks('Work.', 'Gold?') })
  const title = anew('Make a title.', 'Gold?')
  expect(tokenReport([trajectory(first, title, title, anew('Work.', 'Iron?'))])).toMatchObject({
    roots: 1,
    branches: { 'system-prompt': 2, 'no-match': 1 },
  })
})

it('counts a question that is asked again, and answers nobody took', () => {
  const lost = turn({ parent: 0, messagesDelta: [user('Iron?')], delivered: 'abandoned' })
  expect(tokenReport([trajectory(root, lost, next, turn({ parent: 2, messagesDelta: [user('Iron?')] }))])).toMatchObject({
    repeated: 1,
    abandoned: 1,
  })
  expect(tokenReport([trajectory(root), trajectory(root)])).toMatchObject({ repeated: 0 })
})

it('takes what only the gateway saw from its counts', () => {
  const builder = createTokenReport()
  builder.add([trajectory(root)])
  const counts: GatewayCounts = {
    calls: 9,
    failures: 2,
    continuations: 0,
    branches: {},
    tolerated: { arguments: 3 },
    ignored: { temperature: 1 },
    parseIssues: { 'call-invalid': 4 },
    inFlight: 0,
  }
  const report = builder.finish(counts)
  expect(report).toMatchObject({ failed: 2, tolerated: { arguments: 3 }, ignored: { temperature: 1 }, unparsed: { 'call-invalid': 4 } })
})

it('counts calls to frozen models apart, with their tokens and what they cost', () => {
  const frozen = (model: string, cost?: number) =>
    turn({
      branchReasons: ['frozen-model'],
      messagesDelta: [user('Right?')],
      model,
      usage: { promptTokens: 100, completionTokens: 10, cachedTokens: 0 },
      delivered: 'abandoned',
      ...(cost !== undefined && { cost }),
    })
  const critic = trajectory(frozen('judge', 0.25), frozen('judge', 0.5), frozen('planner'))
  expect(tokenReport([trajectory(root, next), critic])).toMatchObject({
    turns: 2,
    continuations: 1,
    roots: 1,
    branches: {},
    repeated: 0,
    abandoned: 0,
    frozen: {
      judge: { calls: 2, promptTokens: 200, completionTokens: 20, cost: 0.75 },
      planner: { calls: 1, promptTokens: 100, completionTokens: 10, cost: null },
    },
  })
})
