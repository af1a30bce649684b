// A training with a framework of Python whose agents run in other processes, and which others watch.
import { once } from 'node:events'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { chatMlTemplate } from '@aworld-train/chat'
import type { RunEvent, RunReport } from '@aworld-train/core'
import { readRun } from '@aworld-train/store'
import { writeTinyModel } from '@aworld-train/testing'
import { afterEach, beforeEach, expect, it, onTestFinished, vi } from 'vitest'
import { AgentTrainer } from './index.ts'
import { writeScriptedPython } from './testing/scripted-python.ts'

/** Asks its model once. The first attempt of one task ends its process after that, if it is a worker. */
const agentText = `import { appendFileSync, existsSync, writeFileSync } from 'node:fs'
const file = (name) => new URL('./' + name, import.meta.url)
const isWorker = process.argv[1].includes('worker-process')
if (isWorker && process.env.BROKEN) throw new Error('this agent cannot be loaded')
export async function agent(task, context) {
  appendFileSync(file('processes'), process.pid + '\\n')
  const { baseUrl, apiKey, model } = context.policy()
  const body = JSON.stringify({ model, messages: [{ role: 'user', content: task.input }] })
  const headers = { authorization: 'Bearer ' + apiKey, 'content-type': 'application/json' }
  const response = await fetch(baseUrl + '/chat/completions', { method: 'POST', headers, body, signal: context.signal })
  const { choices } = await response.json()
  if (isWorker && task.id === 'train-1' && !existsSync(file('killed'))) {
    writeFileSync(file('killed'), String(process.pid))
    process.kill(process.pid, 'SIGKILL')
  }
  return { answer: choices[0].message.content, messages: [] }
}
`

let directory: string
let faults: string

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'awt-workers-'))
  await writeTinyModel({ directory: join(directory, 'model'), template: chatMlTemplate })
  const scripted = await writeScriptedPython(directory)
  faults = scripted.faults
  writeFileSync(join(directory, 'agent.ts'), agentText)
  vi.stubEnv('AWORLD_TRAIN_PYTHON', scripted.python)
})

afterEach(() => {
  vi.unstubAllEnvs()
  rmSync(directory, { recursive: true, force: true })
})

const rows = (split: string) =>
  Array.from({ length: 4 }, (_, index) => ({ id: `${split}-${index}`, prompt: `Is ${index} a number?`, answer: 'yes' }))

function trainer(config: object, options: object = {}) {
  const events: RunEvent[] = []
  const made = new AgentTrainer({
    agent: './agent.ts#agent',
    trainDataset: rows('train'),
    testDataset: rows('test'),
    rewardFunc: (_source: string, solution: string, truth: unknown) => (solution === truth ? 1 : 0),
    baseDirectory: directory,
    runPath: join(directory, 'runs'),
    config: {
      training: { steps: 3, promptsPerStep: 2, samplesPerPrompt: 2, checkpointEvery: 1, evaluateEvery: 3 },
      data: { max_prompt_length: 128, max_response_length: 64 },
      actor_rollout_ref: { model: { path: './model' } },
      smoke: true,
      ...config,
    },
    onEvent: (event: RunEvent) => events.push(event),
    ...options,
  })
  return { made, events }
}

const runOf = () => join(directory, 'runs', readdirSync(join(directory, 'runs'))[0] as string)
const processes = () => [...new Set(readFileSync(join(directory, 'processes'), 'utf8').trimEnd().split('\n').map(Number))]
const executor = { workerNum: 4, slots: 4, graceMs: 200 }

it('loses no rollout to a worker that is killed, and trains each once', async () => {
  const { made, events } = trainer({ executor })
  const report = await made.train<RunReport>()
  expect(report).toMatchObject({
    status: 'finished',
    before: { reward: 0, rollouts: 4 },
    after: { reward: 1, rollouts: 4, failed: 0 },
    counts: { rollouts: 20, episodesByStopReason: { completed: 20 }, modelCalls: { agent: 20 } },
  })
  expect(report.counts.losses).toBeGreaterThan(0)
  expect(report.counts.attempts).toBeGreaterThan(20)
  // "no" and "yes" with their stop token: 3 and 4 tokens. What lost attempts had sampled is superseded.
  expect(report.ledger).toMatchObject({ trained: 4 * 3 + 8 * 4, unexplained: 0 })
  const { trainedTwice, superseded } = JSON.parse(readFileSync(join(runOf(), 'ledger.json'), 'utf8'))
  expect(trainedTwice).toEqual([])
  expect(superseded.length).toBeLessThanOrEqual(report.counts.losses!)
  expect(processes()).toContain(Number(readFileSync(join(directory, 'killed'), 'utf8')))
  expect(processes()).not.toContain(process.pid)
  const warnings = events.flatMap((event) => (event.type === 'warning-raised' && event.code === 'WORKER_LOST' ? event.message : []))
  expect(warnings.join('\n')).toMatch(/Worker "local-\d" ended by SIGKILL and is started again/)
  const run = readRun(runOf())
  const { workers } = run.health(0)
  run.close()
  expect([...new Set(workers.map(({ name }) => name.replace(/\d$/, 'N')))]).toEqual(['local-N'])
}, 240_000)

it('resumes with its agents elsewhere, and shows its numbers on the port of its gateway and to TensorBoard', async () => {
  writeFileSync(faults, '{"killInStep": 2}')
  writeFileSync(join(directory, 'killed'), '')
  const places = { logging: ['tensorboard'], projectName: 'numbers', experimentName: 'digits' }
  await expect(trainer(places).made.train()).rejects.toMatchObject({ code: 'TRAINER_PROCESS_DIED' })
  expect(processes()).toEqual([process.pid])
  const shown: Promise<string>[] = []
  const { made, events } = trainer(
    { ...places, executor: { workerNum: 1, slots: 8 } },
    {
      onEvent(event: RunEvent) {
        events.push(event)
        const start = events.find((each) => each.type === 'run-start')
        if (event.type === 'step-end' && event.step === 2 && start?.type === 'run-start')
          shown.push(fetch(`${start.details['gateway']}/metrics`).then((response) => response.text()))
      },
    },
  )
  const report = await made.train<RunReport>()
  const start = events.find(({ type }) => type === 'run-start')
  expect(start).toMatchObject({ resumedFromStep: 1, details: { tensorboard: expect.stringMatching(/tensorboard_log\/numbers\/digits$/) } })
  expect(report.curve.map(({ step }) => step)).toEqual([1, 2, 3])
  const [text = ''] = await Promise.all(shown)
  expect(text).toMatch(/^aworld_train_run_step \d$/m)
  expect(text).toMatch(/^aworld_train_worker_processes{status="connected"} 1$/m)
  expect(basename(runOf())).toMatch(/^digits-/)
  const curves = join(runOf(), 'tensorboard_log', 'numbers', 'digits')
  const written = readdirSync(curves).map((name) => readFileSync(join(curves, name), 'latin1'))
  expect(written).toHaveLength(1)
  expect(written[0]!.split('train/rewardMean').length - 1).toBe(3)
  expect(written[0]).toContain('test/reward')
}, 240_000)

it('ends with the reason when no worker can load its agent', async () => {
  const { made } = trainer({ executor: { workerNum: 1, env: { BROKEN: '1' } } })
  await expect(made.train()).rejects.toMatchObject({
    code: 'CONFIG_INVALID',
    message: expect.stringMatching(/Worker "local-0" cannot run: .*this agent cannot be loaded/s),
  })
}, 240_000)

it.each([
  ['a live agent', { executor }, { agent: async () => 'yes' }, /^The agent is a live object, which no other process can have/],
  ['an unknown engine', { executor: { engineName: 'rya' } }, {}, /executor\.engineName is "rya": .* Did you mean "ray"\?/],
  [
    'workers on other machines and a gateway on loopback',
    { executor: { engineName: 'ray', address: 'http://head:8265' } },
    {},
    /executor\.engineName "ray" starts workers on other machines, and gateway\.host is 127\.0\.0\.1/,
  ],
  [
    'external workers without a token',
    { executor: { engineName: 'external' } },
    {},
    /executor\.engineName "external" needs executor\.token/,
  ],
])('refuses %s before anything is started', async (_, config, options, message) => {
  await expect(trainer(config, options).made.train()).rejects.toMatchObject({
    code: 'CONFIG_INVALID',
    message: expect.stringMatching(message),
  })
  expect(existsSync(join(directory, 'runs'))).toBe(false)
})

it('says that the port of its gateway is taken', async () => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo
  const { made } = trainer({ gateway: { port } })
  await expect(made.train()).rejects.toMatchObject({ code: 'GATEWAY_PORT_IN_USE', message: expect.stringContaining(String(port)) })
  expect(readdirSync(join(directory, 'runs'))).toEqual([])
})
