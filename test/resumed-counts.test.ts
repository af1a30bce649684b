import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { RunEvent, RunReport } from '@aworld-train/core'
import { diagnose, type TrainingDefinition } from 'aworld-train'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { repository } from './support/run-cli.ts'
import { makeTinyModel } from './support/tiny-model.ts'
import { makeProject, openTrainer, type ProjectChanges, type TinyProject } from './support/tiny-project.ts'

let folder: string
let model: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'aworld-train-counts-'))
  model = await makeTinyModel(join(folder, 'model'))
  process.env['AWORLD_TRAIN_SIMD'] = 'plain'
})

afterAll(async () => {
  delete process.env['AWORLD_TRAIN_SIMD']
  await rm(folder, { recursive: true, force: true })
})

const toolServer = join(repository, 'packages/environment/src/testing/tool-server.ts')

/** An agent that asks the policy, then calls a tool of a server and one that is a function. */
const changes: ProjectChanges = {
  config: { training: { steps: 3 }, concurrency: 4 },
  files: {
    'agent.ts': `
async function run(task, context) {
  const { baseUrl, apiKey, model } = context.policy('agent')
  const body = JSON.stringify({ model, temperature: 0.5, messages: [{ role: 'user', content: task.input }] })
  const response = await fetch(baseUrl + '/chat/completions', { method: 'POST', headers: { authorization: 'Bearer ' + apiKey }, body, signal: context.signal })
  const { content } = (await response.json()).choices[0].message
  const tools = await context.tools('agent')
  await tools.call({ name: 'echo', arguments: { text: content } }, context.signal)
  await context.runTool('agent', { id: 'call', name: 'shout', arguments: '{}' }, async () => ({ content: content.toUpperCase(), isError: false }))
  return { answer: content, messages: [] }
}
const tools = { command: 'node', args: [${JSON.stringify(toolServer)}], stateless: true }
export const agent = { agents: [{ name: 'agent', trainable: true, functions: ['shout'], mcpConfig: { mcpServers: { tools } } }], run }
`,
  },
}

const stepsOf = (event: RunEvent) => (event.type === 'step-end' ? event.step : 0)

/** Trains until a rollout of the step after \`step\` has ended; resolves to the report. */
async function trainUntil(project: TinyProject, step: number): Promise<RunReport> {
  const stop = new AbortController()
  let reached = 0
  const onEvent = (event: RunEvent) => {
    reached = Math.max(reached, stepsOf(event))
    if (reached >= step && event.type === 'rollout-end') stop.abort(new Error('enough'))
  }
  return await (await openTrainer(project, { onEvent })).train(stop.signal)
}

it('a run that was stopped twice reports what all its processes did', async () => {
  const whole = await (await openTrainer(await makeProject(folder, model, changes))).train()
  const project = await makeProject(folder, model, changes)
  const stops = [await trainUntil(project, 1), await trainUntil(project, 2)]
  expect(stops.map(({ status }) => status)).toEqual(['stopped', 'stopped'])
  const report = await (await openTrainer(project)).train()
  expect(await project.runs()).toHaveLength(1)

  expect(whole.counts).toMatchObject({
    rollouts: 24,
    modelCalls: { agent: 24, gateway: 24, engine: 24 },
    toolCalls: { asked: 0, agent: 48, environment: 24, functions: 24 },
  })
  expect(report.counts.rollouts).toBe(24)
  expect(report.counts.modelCalls.agent).toBe(24)
  expect(report.counts.modelCalls.gateway).toBeGreaterThanOrEqual(24)
  expect(report.counts.toolCalls.functions).toBeGreaterThanOrEqual(24)
  const { agent, environment, functions } = report.counts.toolCalls
  expect(environment + functions).toBeGreaterThanOrEqual(agent)
  const { turns, roots, ignored } = report.tokenReport as NonNullable<RunReport['tokenReport']>
  expect({ turns, roots }).toEqual({ turns: whole.tokenReport?.turns, roots: whole.tokenReport?.roots })
  expect(ignored['temperature']).toBeGreaterThanOrEqual(24)
  const [first, second] = stops.map(({ times }) => times.wallMs) as [number, number]
  expect(first).toBeLessThan(second)
  expect(report.times.wallMs).toBeGreaterThan(second)
  expect(report.times.cpuMs).toBeGreaterThan((stops[1] as RunReport).times.cpuMs)
})

it('doctor lists tools that are functions beside those of servers', async () => {
  const project = await makeProject(folder, model, changes)
  const { default: definition } = (await import(join(project.folder, 'aworld-train.config.ts'))) as { default: TrainingDefinition }
  const checks = await diagnose({ ...definition, baseDirectory: project.folder }, new AbortController().signal)
  expect(checks.find(({ name }) => name === 'tools')?.message).toMatch(/^echo, .*, shout \(function\)$/)
})
