import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { EvaluationReport, type RunListing } from '@aworld-train/core'
import { expect, it } from 'vitest'
import { openDashboard } from './open-dashboard.ts'
import { writeRun } from './testing/write-run.ts'

const calls = { agent: 4, gateway: 4, engine: 4 }
const evaluation = EvaluationReport.parse({
  version: 2,
  kind: 'evaluation',
  model: '/models/tiny',
  checkpoint: null,
  run: 'tiny',
  path: 'runs/tiny-eval',
  agent: 'solver',
  startedAt: 5,
  status: 'finished',
  answeredAs: [],
  seed: 1,
  samplesPerTask: 2,
  sampling: { temperature: 1, topP: 1, topK: 0, maxTokens: 8, stop: [], seed: 1 },
  tasks: 2,
  rollouts: 4,
  failed: 1,
  notStarted: 0,
  unscored: 0,
  failures: [],
  scored: { tasks: 2, rollouts: 3 },
  reward: 0.5,
  interval: [0, 1],
  bounds: [0.4, 0.6],
  passAtK: { 1: { value: 0.5, interval: [0, 1], tasks: 2 } },
  majority: null,
  mostFrequentAnswer: null,
  byKind: {},
  cost: null,
  rewardCost: 0,
  usage: { promptTokens: 4, completionTokens: 4, cachedTokens: 0 },
  perRollout: { turns: 1, toolCalls: 0, seconds: 1 },
  unseen: 0,
  comparison: null,
  counts: { modelCalls: calls, toolCalls: { asked: 0, agent: 0, environment: 0, functions: 0, servers: 0 } },
  tokenReport: {
    version: 1,
    turns: 4,
    continuations: 0,
    roots: 4,
    branches: {},
    repeated: 0,
    abandoned: 0,
    failed: 0,
    tolerated: {},
    unparsed: {},
    ignored: {},
    frozen: {},
  },
  times: { wallMs: 1 },
  versions: {},
})

it('lists every run beside an evaluation, reports of another shape and folders that are no run', async () => {
  await using run = await writeRun()
  const written = async (name: string, manifest: unknown, report?: unknown) => {
    const folder = join(run.below, name)
    await mkdir(folder)
    await writeFile(join(folder, 'manifest.json'), typeof manifest === 'string' ? manifest : JSON.stringify(manifest))
    if (report !== undefined) await writeFile(join(folder, 'report.json'), JSON.stringify(report))
  }
  const manifest = { version: 3, name: 'tiny', createdAt: 5, configurationHash: 'x', status: 'finished', versions: {}, provenance: {} }
  await written('evaluated', { ...manifest, kind: 'evaluation' }, evaluation)
  await written('other-report', manifest, { version: 1, curve: 7 })
  await written('no-report', manifest, null)
  await written('no-manifest', 'null')
  await written('torn-manifest', '{"version":')
  await written('other-manifest', { version: 3, name: 7 })
  const dashboard = await openDashboard({ below: run.below })
  try {
    const { origin, searchParams } = new URL(dashboard.url)
    const response = await fetch(`${origin}/api/runs`, { headers: { authorization: `Bearer ${searchParams.get('token')}` } })
    expect(response.status).toBe(200)
    const rows = Object.fromEntries(((await response.json()) as RunListing[]).map((row) => [row.id, row]))
    expect(rows[run.id]).toMatchObject({ kind: 'training', problem: null, steps: 2, before: 1 / 3, after: 2 / 3 })
    expect(rows['evaluated']).toMatchObject({ kind: 'evaluation', problem: null, rollouts: 4, before: null, after: 0.5 })
    const bad = ['other-report', 'no-report', 'no-manifest', 'torn-manifest', 'other-manifest']
    expect(bad.map((id) => [id, typeof rows[id]?.problem])).toEqual(bad.map((id) => [id, 'string']))
  } finally {
    await dashboard.close()
  }
})
