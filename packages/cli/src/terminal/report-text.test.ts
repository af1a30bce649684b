import type { EvaluationResult, RunReport } from '@aworld-train/core'
import { expect, it } from 'vitest'
import { renderReport } from './report-text.ts'

const sampling = { temperature: 1, topP: 1, topK: 0, maxTokens: 8, stop: [], seed: 0 }

const evaluation = (reward: number, rollouts = 256): EvaluationResult => ({
  name: 'test',
  step: 0,
  tasks: 64,
  rollouts,
  failed: 0,
  unscored: 0,
  failures: [],
  reward,
  interval: [reward - 0.05, reward + 0.05],
  sampling,
  byKind: { 'two-hop': { rollouts: 10, reward } },
})

const report: RunReport = {
  version: 1,
  kind: 'training',
  model: 'model',
  checkpoint: 'checkpoints/step-000100',
  run: 'chemist',
  path: 'runs/chemist-1',
  status: 'finished',
  seed: 0,
  engine: 'local',
  tier: {},
  before: evaluation(0.2),
  after: evaluation(0.9),
  greedyBefore: evaluation(0.1, 64),
  greedyAfter: evaluation(0.95, 64),
  curve: Array.from({ length: 100 }, (_, index) => ({ step: index + 1, reward: index / 100, metrics: {} })),
  ledger: null,
  agents: {},
  maxLogprobDifference: 0.0123,
  failures: [{ code: 'REWARD_FAILED', count: 77, rollout: 'train/1/0/0', message: 'No unit.', source: '/project/reward.ts:12' }],
  warnings: [],
  counts: {
    rollouts: 7040,
    episodesByStopReason: { completed: 7040 },
    modelCalls: { agent: 21_394, gateway: 21_394, engine: 21_394 },
    toolCalls: { asked: 14_355, agent: 14_355, environment: 14_000, functions: 355, servers: 14_000 },
  },
  times: { wallMs: 25_340, cpuMs: 34_900, phasesMs: { rollout: 12_100, update: 9000 } },
  checkpoints: [],
  versions: {},
}

const linesAt = (columns: number | undefined, changes: Partial<RunReport> = {}) =>
  renderReport({ ...report, ...changes }, { columns }).split('\n')

it('says how many rollouts were not started', () => {
  const lines = linesAt(undefined, { counts: { ...report.counts, attempts: 7041, notStarted: 1764 } })
  expect(lines.find((line) => line.startsWith('counts'))).toMatch(
    /^counts {3}7040 rollouts in 7041 attempts \(1764 more not started, of solved groups\), 21394 model calls/,
  )
})

it('says what each number counts', () => {
  const lines = linesAt(undefined)
  expect(
    lines.slice(
      lines.findIndex((line) => line.startsWith('held-out')),
      lines.indexOf('next'),
    ),
  ).toMatchInlineSnapshot(`
    [
      "held-out reward before                after",
      "temperature 1   0.200 [0.150, 0.250]  0.900 [0.850, 0.950]",
      "  two-hop       0.200                 0.900",
      "greedy          0.100 [0.050, 0.150]  0.950 [0.900, 1.000]",
      "on 64 tasks, 256 rollouts and 64 greedy ones each; 95 % intervals over tasks",
      "",
      "time     25.3 s wall, 34.9 s CPU without the tool servers (rollout 12.1, update 9.0)",
      "counts   7040 rollouts, 21394 model calls, 14355 tool calls (355 of functions)",
      "logprobs differ between sampler and trainer by 0.012 at most",
      "failed   77 of REWARD_FAILED at /project/reward.ts:12, first train/1/0/0: No unit.",
      "",
      "model    model, trained: checkpoints/step-000100",
      "run      runs/chemist-1   (report.json, checkpoints, every token in segments/)",
    ]
  `)
})

it('shows attempts where there are more than rollouts', () => {
  const countsLine = (attempts: number) =>
    linesAt(undefined, { counts: { ...report.counts, rollouts: 320, attempts } }).find((line) => line.startsWith('counts'))
  expect([countsLine(320), countsLine(331)]).toEqual([
    expect.stringMatching(/^counts {3}320 rollouts, 21394 model/),
    expect.stringMatching(/^counts {3}320 rollouts in 331 attempts, 21394 model/),
  ])
})

it.each([40, 70, 80])('keeps curve and table within %i columns', (columns) => {
  const lines = linesAt(columns)
  const table = lines.slice(
    0,
    lines.findIndex((line) => line.startsWith('on 64 tasks')),
  )
  expect(Math.max(...table.map((line) => line.length))).toBeLessThanOrEqual(columns)
  expect(table.filter((line) => line.includes('[0.850, 0.950]'))).toHaveLength(1)
})

it('breaks what is longer at spaces, under its own text', () => {
  const lines = linesAt(40)
  const at = lines.findIndex((line) => line.startsWith('counts'))
  expect(lines.slice(at, at + 3)).toEqual([
    'counts   7040 rollouts, 21394 model',
    '         calls, 14355 tool calls (355 of',
    '         functions)',
  ])
  const commands = lines.filter((line) => /^ {2}(npm|npx) /.test(line))
  expect(commands).toHaveLength(4)
})

it('tells calls that an agent ran by itself from those that ran here', () => {
  const toolCalls = { asked: 20, agent: 0, environment: 0, functions: 0, servers: null }
  expect(linesAt(undefined, { counts: { ...report.counts, toolCalls } })).toContain(
    'counts   7040 rollouts, 21394 model calls, 20 tool calls asked for, 0 run here',
  )
})

it('says of how many tasks a number is, where others have no outcome', () => {
  const after = { ...evaluation(0.9), failed: 17, counted: { tasks: 60, rollouts: 239 } }
  expect(linesAt(undefined, { after }).filter((line) => line.includes('no outcome'))).toEqual([
    `${after.name}: on 60 of 64 tasks, 239 of 256 rollouts; the others have no outcome`,
  ])
})

it('shows what is missing as missing', () => {
  expect(linesAt(80, { before: null, greedyBefore: null }).find((line) => line.startsWith('temperature'))).toMatch(
    /^temperature 1 +missing +0\.900/,
  )
  expect(linesAt(80, { before: null, after: null, curve: [] }).join('\n')).not.toContain('held-out')
})

it('says what became of the tokens of each agent of a swarm', () => {
  const agents = {
    planner: { sampled: 231, trained: 231, untrained: {} },
    solver: { sampled: 563, trained: 0, untrained: { 'unselected-by-trainer': 563 } },
  }
  const tokens = linesAt(undefined, { agents }).filter((line) => /sampled, /.test(line))
  expect(tokens).toEqual([
    '         planner: 231 sampled, 231 trained',
    '         solver: 563 sampled, 0 trained + unselected-by-trainer 563',
  ])
  expect(linesAt(undefined, { agents: { planner: agents.planner } }).join()).not.toContain('planner')
})

it('has a line for each of several policies and roles, within 80 columns', () => {
  const ledger = { sampled: 1_234_567, trained: 1_000_000, untrained: { evaluation: 234_560 }, unexplained: 7 }
  const frozen = { sampled: 4321, trained: 0, untrained: { 'frozen-policy': 4321 }, unexplained: 0 }
  const step = (reward: number, malformedTurns: number) => ({
    'role/planner/reward': reward,
    'role/planner/turns': 128,
    'role/planner/malformedTurns': malformedTurns,
    'role/planner/sampledTokens': 4480,
    'role/reader/turns': 0,
    'role/reader/malformedTurns': 0,
    'role/reader/sampledTokens': 0,
  })
  const several: Partial<RunReport> = {
    model: null,
    policies: {
      lead: { model: 'lead', trainable: true, checkpoint: 'checkpoints/step-000030/lead', ledger },
      reader: { model: 'reader', trainable: false, checkpoint: null, ledger: frozen },
    },
    curve: [
      { step: 1, reward: 0.0625, metrics: step(0.0625, 64) },
      { step: 2, reward: 0.8125, metrics: step(0.8125, 1) },
    ],
  }
  const lines = linesAt(80, several)
  const ofThese = lines.filter((line) => /^(policy|role|model) /.test(line))
  expect(ofThese).toEqual([
    'policy   lead: 1234567 = 1000000 trained + 234560 untrained + 7 unexplained',
    'policy   reader (frozen): 4321 = 0 trained + 4321 untrained + 0 unexplained',
    'role     planner: reward 0.06 → 0.81, malformed 50 → 0.78 %, 35 → 35 tokens/turn',
    'role     reader: reward – → –, malformed – → – %, – → – tokens/turn',
    'model    lead: lead, trained: checkpoints/step-000030/lead',
    'model    reader: reader',
  ])
  expect(lines.filter((line) => line.includes('--policy'))).toEqual([
    '  npx aworld-train export runs/chemist-1 --what model --policy lead --to lead-trained',
  ])
  expect(linesAt(80, { ...several, engine: 'tinker' }).join()).not.toContain('--policy')
})
