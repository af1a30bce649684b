// @module-tag quick
// The bridge in Python against verl's own classes, and against a real rollout service that is hurt on the way.
import { execFile } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { readRun } from '@aworld-train/store'
import { bridgeDirectory } from '@aworld-train/trainers/shared'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { verlEnvironment } from '../../support/python-environment.ts'
import { startBridgeService } from '../support/start-bridge-service.ts'
import { type PythonWorker, startWorker, type WorkerAnswer } from './bridge-worker.ts'

const root = fileURLToPath(new URL('../../..', import.meta.url))
const model = join(root, 'examples', 'periodic-table', 'model')
const token = 'secret'
const run = promisify(execFile)

let python: string
let worker: PythonWorker
let folder: string
let incarnations = 0

beforeAll(async () => {
  python = await verlEnvironment()
  folder = await mkdtemp(join(tmpdir(), 'aworld-train-bridge-'))
  worker = startWorker(python)
}, 900_000)

afterAll(async () => {
  await worker?.close()
  await rm(folder, { recursive: true, force: true })
})

/** Python's own tests, in one process. */
test.each(['test_[pt]*.py', 'test_agent_loop.py'])('the tests %s of the bridge pass beside verl', async (pattern) => {
  const { stderr } = await run(python, ['-W', 'ignore', '-m', 'unittest', 'discover', '-s', 'tests/with_verl', '-p', pattern], {
    cwd: bridgeDirectory,
    env: { ...process.env, PYTHONPATH: bridgeDirectory, PYTHONDONTWRITEBYTECODE: '1', AWORLD_TRAIN_TEST_MODEL: model },
    maxBuffer: 64 * 1024 * 1024,
  })
  expect(stderr).toMatch(/Ran \d+ tests[\s\S]*\nOK\s*$/)
})

interface Stage {
  readonly path: string
  readonly incarnation: string
  play(scenario?: Readonly<Record<string, unknown>>, environment?: Readonly<Record<string, string>>): Promise<WorkerAnswer>
  /** Kills the service and starts it again on its port and run directory. */
  restart(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

async function openStage(setting: Readonly<Record<string, unknown>> = {}): Promise<Stage> {
  const incarnation = `start-${incarnations++}`
  const path = join(folder, incarnation)
  const serviceOptions = { path: join(path, 'run'), port: 0, token, directory: model, turns: 3, ...setting }
  let service = await startBridgeService(serviceOptions)
  const { url } = service
  const port = Number(new URL(url).port)
  return {
    path,
    incarnation,
    play: (scenario = {}, environment = {}) =>
      worker.play({
        model,
        environment: {
          AWORLD_TRAIN_CHANNEL: url,
          AWORLD_TRAIN_CHANNEL_TOKEN: token,
          AWORLD_TRAIN_RUN: 'demo',
          AWORLD_TRAIN_INCARNATION: incarnation,
          AWORLD_TRAIN_RUN_PATH: path,
          ...environment,
        },
        ...scenario,
      }),
    async restart() {
      await service.kill()
      service = await startBridgeService({ ...serviceOptions, port })
    },
    [Symbol.asyncDispose]: () => service.close(),
  }
}

async function ledger({ path, incarnation }: Stage, name: string): Promise<{ key: string; tokens: number; reason?: string }[]> {
  const directory = join(path, 'ledger', incarnation)
  const files = (await readdir(directory).catch(() => [])).filter((file) => file.startsWith(`${name}-`))
  const texts = await Promise.all(files.map((file) => readFile(join(directory, file), 'utf8')))
  return texts.flatMap((text) => text.split('\n').filter(Boolean)).map((line) => JSON.parse(line))
}

const sum = (values: readonly { readonly tokens: number }[]) => values.reduce((total, { tokens }) => total + tokens, 0)
const maskTokens = ({ results }: WorkerAnswer) => results.flatMap(({ rows = [] }) => rows).reduce((total, { mask }) => total + mask, 0)
const errors = ({ results }: WorkerAnswer) => results.map(({ error }) => error?.code)

describe('against a real rollout service', () => {
  test('rollouts return rows whose sampled tokens are those of the policy; the files come over the channel', async () => {
    await using stage = await openStage({ directory: null })
    const answer = await stage.play({ rollouts: 8 })
    expect(errors(answer)).toEqual(Array(8).fill(undefined))
    expect(answer.results[5]).toMatchObject({
      key: `demo/${stage.incarnation}/train/1/u1/1`,
      turns: 6,
      rows: [{ reward: 0.5, info: { acc: 0.5, failed: 0, exact: 1 } }],
    })
    expect(answer.calls).toBe(24)
    expect(maskTokens(answer)).toBe(answer.tokens)
    expect(sum(await ledger(stage, 'sampled'))).toBe(answer.tokens)
    expect(await ledger(stage, 'undelivered')).toEqual([])
  })

  test('a rollout with branches returns several rows, all with the reward, no token twice', async () => {
    await using stage = await openStage({ asides: true })
    const answer = await stage.play()
    expect(answer.results.map(({ rows }) => rows?.length)).toEqual(Array(4).fill(4))
    expect(new Set(answer.results.flatMap(({ rows = [] }) => rows.map(({ reward }) => reward)))).toEqual(new Set([0.5]))
    expect(maskTokens(answer)).toBe(answer.tokens)
  })

  test('a reward of verl is left to verl', async () => {
    await using stage = await openStage({ reward: 'native' })
    const { results } = await stage.play()
    expect(results.map(({ rows }) => rows?.map(({ reward, info }) => ({ reward, info })))).toEqual(
      Array(4).fill([{ reward: null, info: {} }]),
    )
  })

  test('the service is killed in mid-call and started again: every rollout ends, and every token is accounted for', async () => {
    await using stage = await openStage()
    // A call takes so long that second turns are under way at the kill, also on a busy machine.
    const playing = stage.play({ rollouts: 8, delayMs: 2000 })
    for (let waited = 0; (await ledger(stage, 'sampled')).length < 8 && waited < 600; waited++) await sleep(100)
    await sleep(700)
    await stage.restart()
    const answer = await playing
    expect(errors(answer)).toEqual(Array(8).fill(undefined))
    expect(answer.results.every(({ rows }) => rows?.[0]?.reward === 0.5)).toBe(true)
    const sampled = await ledger(stage, 'sampled')
    expect(sum(sampled)).toBe(answer.tokens)
    const undelivered = await ledger(stage, 'undelivered')
    expect(new Set(undelivered.map(({ reason }) => reason))).toEqual(new Set(['connection-lost']))
    // What neither a row nor the ledger of Python has stands in the store, in the attempt that the kill ended.
    const first = sum(sampled) - maskTokens(answer) - sum(undelivered)
    expect(first).toBeGreaterThan(0)
    const run = readRun(join(stage.path, 'run'))
    expect(run.counts().sampledTokens).toBe(maskTokens(answer) + first)
    run.close()
  })

  test('an agent that throws fails its rollout in training, and scores 0 in validation', async () => {
    await using stage = await openStage()
    const trained = await stage.play({ content: 'This throws.' })
    expect(errors(trained)).toEqual(Array(4).fill('AGENT_FAILED'))
    expect(trained.results[0]?.error?.message).toContain('the agent threw')
    const { results } = await stage.play({ content: 'This throws.', split: 'val' })
    expect(results[0]).toMatchObject({ rows: [{ response: 1, mask: 0, reward: 0, info: { acc: 0, failed: 1 } }] })
  })

  test('an agent that hangs ends at the deadline of the service, in validation with a score of 0', async () => {
    await using stage = await openStage({ rolloutTimeoutMs: 500 })
    expect(errors(await stage.play({ content: 'This hangs.' }))).toEqual(Array(4).fill('AGENT_LIMIT'))
    expect((await stage.play({ content: 'This hangs.', split: 'val' })).results[0]).toMatchObject({ rows: [{ reward: 0, mask: 0 }] })
  })

  test('an agent beyond deadline_s ends too', async () => {
    await using stage = await openStage()
    expect(errors(await stage.play({ content: 'This hangs.', deadlineSeconds: 0.5 }))).toEqual(Array(4).fill('AGENT_LIMIT'))
  })

  test('logprobs that are not finite, or ids beyond the vocabulary, never become a row', async () => {
    await using stage = await openStage()
    for (const fault of ['nan', 'beyond-vocabulary']) {
      const answer = await stage.play({ fault, uid: fault })
      expect(errors(answer), fault).toEqual(Array(4).fill('POLICY_RESPONSE_INVALID'))
    }
  })

  test('a call that the policy gave up without a token is no empty turn', async () => {
    await using stage = await openStage()
    const answer = await stage.play({ fault: 'abort-once', rollouts: 1 })
    expect(answer.results[0]?.rows?.[0]?.response ?? null).not.toBe(0)
    expect(maskTokens(answer)).toBe(answer.results[0]?.rows ? answer.tokens : 0)
  })

  test('cancelling run() cancels the rollout', async () => {
    await using stage = await openStage()
    const answer = await stage.play({ content: 'This hangs.', cancelAfterMs: 500 })
    expect(errors(answer)).toEqual(Array(4).fill('cancelled'))
  })

  test('a worker without the token, or with another template, is told at once', async () => {
    await using stage = await openStage()
    expect(errors(await stage.play({}, { AWORLD_TRAIN_CHANNEL_TOKEN: 'wrong' }))).toEqual(Array(4).fill('CHANNEL_UNAUTHORIZED'))
    const other = await stage.play({ template: '{% for message in messages %}{{ message.content }}{% endfor %}' })
    expect(errors(other)).toEqual(Array(4).fill('TEMPLATE_MISMATCH'))
    expect(other.results[0]?.error?.message).toMatch(/first that differs is \d+/)
  })

  test('costs less than 2 ms of Python for a model call', async () => {
    await using stage = await openStage({ turns: 20 })
    const { calls, cpuSeconds, wallSeconds } = await stage.play({ rollouts: 32, warm: true })
    console.log(
      `bridge: ${((cpuSeconds / calls) * 1000).toFixed(3)} ms of Python a call, ${((wallSeconds / calls) * 1000).toFixed(2)} ms on the clock`,
    )
    expect(calls).toBe(640)
    expect((cpuSeconds / calls) * 1000).toBeLessThan(2)
  })
})
