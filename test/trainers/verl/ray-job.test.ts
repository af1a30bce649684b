// A run by hand on a cluster: `ray start --head`, and `ray job submit … -- bash run.sh` against `aworld-train serve`.
import type { ChildProcess } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { readRun } from '@aworld-train/store'
import { readLedger, toTokenLedger } from '@aworld-train/trainers/shared'
import { AgentTrainer } from 'aworld-train'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { verlEnvironment } from '../../support/python-environment.ts'
import { repository } from '../../support/run-cli.ts'
import { type RayCluster, startRayCluster } from './ray-cluster.ts'
import { moveServe, startServe, stepsDone } from './serve-run.ts'

const limits = { maxPromptTokens: 192, maxResponseTokens: 64 }
const token = randomBytes(16).toString('hex')

let folder: string
/** What is submitted, and where its run is written. */
let path: string
let kept: string
let cluster: RayCluster | undefined
let service: ChildProcess | undefined
let channel: string

beforeAll(async () => {
  const python = await verlEnvironment()
  process.env['AWORLD_TRAIN_PYTHON'] = python
  folder = await mkdtemp(join(tmpdir(), 'aworld-train-job-'))
  const starting = startRayCluster(python)
  const trainer = new AgentTrainer({
    agent: './agent.yaml',
    config: './grpo_trainer.yaml',
    trainDataset: join(repository, 'examples/periodic-table/data/train.jsonl'),
    baseDirectory: fileURLToPath(new URL('./by-hand/', import.meta.url)),
    runPath: folder,
    name: 'pair',
  })
  const [dryRun, head] = await Promise.allSettled([trainer.dryRun(), starting])
  if (head.status === 'fulfilled') cluster = head.value
  for (const each of [dryRun, head]) if (each.status === 'rejected') throw each.reason
  path = (dryRun as PromiseFulfilledResult<{ path: string }>).value.path
  channel = `ws://127.0.0.1:${await moveServe(path)}/v1/channel`
  kept = join(folder, 'kept')
  await mkdir(kept)
  await writeFile(join(kept, 'channel.token'), token, { mode: 0o600 })
  service = await startServe(path, token)
})

afterAll(async () => {
  service?.kill('SIGTERM')
  await cluster?.close()
  await rm(folder, { recursive: true, force: true })
})

it('trains both steps as a job of a cluster that knows nothing of the run', async () => {
  // The channel is given to the job, and so to its workers, to whom run.sh gives it as well.
  const runtime = JSON.stringify({ env_vars: { AWORLD_TRAIN_CHANNEL: channel, AWORLD_TRAIN_RUN_PATH: kept } })
  const script = ['bash', 'run.sh', 'trainer.total_training_steps=2', 'trainer.save_freq=2']
  const { code, output } = await cluster!.submit(['--working-dir', path, '--runtime-env-json', runtime, '--', ...script])
  expect(code, output.slice(-8_000)).toBe(0)
  expect(output).toMatch(/Job 'raysubmit_\w+' succeeded/)
  expect(stepsDone(kept)).toEqual([1, 2])
  expect(existsSync(join(kept, 'checkpoints/global_step_2/actor'))).toBe(true)
  expect(existsSync(join(path, 'checkpoints'))).toBe(false)
})

it('accounts for every token of the job', async () => {
  const [incarnation, ...others] = await readdir(join(kept, 'ledger'))
  expect(others).toEqual([])
  const run = await readRun(join(path, 'service', 'rollouts'))
  const { ledger, trainedTwice, logprobDifference } = toTokenLedger({
    ledgers: [readLedger(kept, incarnation!)],
    incarnations: [{ incarnation: incarnation!, resumedFromStep: 0 }],
    calls: run.calls(),
    episode: (key) => run.episode(key),
    rows: { rows: 'all', limits, reward: 'service' },
  })
  run.close()
  expect(ledger).toMatchObject({ unexplained: 0 })
  expect(ledger.trained).toBeGreaterThan(0)
  expect(trainedTwice).toEqual([])
  expect(logprobDifference.first).toBeLessThanOrEqual(1e-4)
})

it('shows nobody the secret of the channel', async () => {
  const jobs = await cluster!.read('/api/jobs/')
  expect(jobs).toContain('bash run.sh')
  const [job] = JSON.parse(jobs) as { submission_id: string }[]
  expect(jobs + (await cluster!.read(`/api/jobs/${job!.submission_id}/logs`))).not.toContain(token)
  expect(await readFile(join(kept, 'channel.token'), 'utf8')).toBe(token)
})
