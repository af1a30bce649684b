// Asynchronous training of the published swarm, one agent trained and three frozen; verl is killed on the way and resumes.

import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseChannelKey, type RunReport } from '@aworld-train/core'
import { readRun } from '@aworld-train/store'
import { AgentTrainer, type RunEvent } from 'aworld-train'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { verlEnvironment } from '../../support/python-environment.ts'
import { repository } from '../../support/run-cli.ts'

const project = fileURLToPath(new URL('./swarm/', import.meta.url))

let folder: string
let helper: Server
const requests: { readonly key: string | undefined; readonly roles: string[] }[] = []
let firstError: unknown
let report: RunReport
const events: RunEvent[] = []

/** A third party that says the same to everyone. */
async function startHelper(): Promise<Server> {
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const body = JSON.parse(Buffer.concat(chunks).toString()) as { messages: { role: string }[] }
    requests.push({ key: request.headers.authorization, roles: body.messages.map(({ role }) => role) })
    response.setHeader('content-type', 'application/json')
    response.end(
      JSON.stringify({
        id: 'c',
        object: 'chat.completion',
        created: 0,
        model: 'helper',
        choices: [{ index: 0, message: { role: 'assistant', content: 'Go on.' }, finish_reason: 'stop' }],
        usage: { prompt_tokens: 5, completion_tokens: 2, total_tokens: 7 },
      }),
    )
  }).listen(0, '127.0.0.1')
  await new Promise<void>((resolve) => server.once('listening', () => resolve()))
  return server
}

/** The main process of verl among those of this run. */
async function verlMainOf(runs: string): Promise<number> {
  for (const name of await readdir('/proc')) {
    if (!/^\d+$/.test(name)) continue
    const [command, environment] = await Promise.all(
      ['cmdline', 'environ'].map((file) => readFile(join('/proc', name, file), 'latin1').catch(() => '')),
    )
    if (/-m\0verl\.trainer\.main_ppo/.test(command!) && environment!.includes(`AWORLD_TRAIN_RUN_PATH=${runs}`)) return Number(name)
  }
  throw new Error(`No verl runs in ${runs}.`)
}

function trainer(onEvent: (event: RunEvent) => void): AgentTrainer {
  return new AgentTrainer({
    agent: './agent.yaml',
    rewardFunc: './reward.ts#evenTokens',
    trainDataset: join(repository, 'examples/periodic-table/data/train.jsonl'),
    baseDirectory: project,
    runPath: folder,
    name: 'swarm',
    onEvent,
    config: {
      training: { steps: 4, promptsPerStep: 4, samplesPerPrompt: 4, learningRate: 1e-4, evaluateEvery: null, checkpointEvery: 1 },
      data: { max_prompt_length: 192, max_response_length: 64 },
      actor_rollout_ref: { model: { path: join(repository, 'examples/periodic-table/model') } },
      trainer: { val_before_train: false },
      smoke: true,
      layout: { mode: 'hybrid', schedule: 'colocate_async' },
      limits: { maxTurns: 4 },
      maxCompletionTokens: 12,
    },
  })
}

beforeAll(async () => {
  process.env['AWORLD_TRAIN_PYTHON'] = await verlEnvironment()
  folder = await mkdtemp(join(tmpdir(), 'aworld-train-swarm-'))
  helper = await startHelper()
  process.env['SWARM_LLM_BASE_URL'] = `http://127.0.0.1:${(helper.address() as { port: number }).port}/v1`

  let killed = false
  await trainer((event) => {
    if (event.type !== 'step-end' || event.step !== 2 || killed) return
    killed = true
    void verlMainOf(folder).then((pid) => process.kill(pid, 'SIGKILL'))
  })
    .train()
    .catch((error: unknown) => {
      firstError = error
    })
  report = await trainer((event) => events.push(event)).train()
}, 900_000)

afterAll(async () => {
  helper?.close()
  helper?.closeAllConnections()
  await rm(folder, { recursive: true, force: true })
})

it('ends with an error that names what died and what to do', () => {
  expect(firstError).toMatchObject({ code: 'TRAINER_PROCESS_DIED', message: expect.stringMatching(/run the same command again/) })
})

it('goes on from the checkpoint of its last whole step, in the same run', () => {
  const start = events.find((event) => event.type === 'run-start')
  expect(start).toMatchObject({
    resumedFromStep: expect.any(Number),
    details: { agent: 'agent_to_be_train trained; plan_agent, exe_agent, sum_agent frozen' },
  })
  expect((start as { resumedFromStep: number }).resumedFromStep).toBeGreaterThanOrEqual(1)
  expect(report.status).toBe('finished')
  expect(report.curve.map(({ step }) => step)).toEqual([1, 2, 3, 4])
})

it('counts no row twice and explains every token; what the kill discarded has a name', async () => {
  expect(report.ledger).toMatchObject({ unexplained: 0 })
  expect(report.ledger!.trained).toBeGreaterThan(0)
  const ledger = JSON.parse(await readFile(join(report.path, 'ledger.json'), 'utf8'))
  expect(ledger.trainedTwice).toEqual([])
  expect(ledger.incarnations).toHaveLength(2)
  const discarded = Object.entries(report.ledger!.untrained).filter(([reason]) => /superseded|cancelled|unselected/.test(reason))
  expect(discarded.length).toBeGreaterThan(0)
})

it('samples with weights whose version rises', async () => {
  const run = await readRun(report.path)
  const versions = new Map<number, Set<number>>()
  for (const episode of run.episodes()) {
    const { step } = parseChannelKey(episode.rollout)!
    for (const { turns, trainable } of episode.trajectories)
      if (trainable)
        for (const turn of turns)
          for (const { version } of turn.weightVersions) versions.set(step, (versions.get(step) ?? new Set()).add(version))
  }
  run.close()
  const newest = [...versions].sort(([a], [b]) => a - b).map(([, seen]) => Math.max(...seen))
  expect(newest.length).toBeGreaterThanOrEqual(3)
  expect(newest.at(-1)).toBeGreaterThan(newest[0]!)
  expect(newest).toEqual([...newest].sort((a, b) => a - b))
})

it('trains one agent; the others keep their own addresses and keys', async () => {
  const run = await readRun(report.path)
  const episode = Array.from(run.episodes()).find(({ stopReason }) => stopReason === 'completed')!
  run.close()
  expect(episode.trajectories.filter(({ trainable }) => trainable).map(({ agent }) => agent)).toEqual(['agent_to_be_train'])
  expect(new Set(requests.map(({ key }) => key))).toEqual(new Set(['Bearer helper-key']))
  expect(requests.length).toBeGreaterThanOrEqual(3 * 4 * 4)
})
