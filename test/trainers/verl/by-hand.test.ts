// The older form by hand: a loop class in agent.yaml, a reward in Python, `aworld-train serve` and `bash run.sh`, with the service killed on the way.
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { parseChannelKey } from '@aworld-train/core'
import { readRun } from '@aworld-train/store'
import { readLedger, toTokenLedger } from '@aworld-train/trainers/shared'
import { AgentTrainer } from 'aworld-train'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { parse } from 'yaml'
import { verlEnvironment } from '../../support/python-environment.ts'
import { repository } from '../../support/run-cli.ts'
import { moveServe, startServe, stepsDone } from './serve-run.ts'

const project = fileURLToPath(new URL('./by-hand/', import.meta.url))
const limits = { maxPromptTokens: 192, maxResponseTokens: 64 }
const incarnation = 'by-hand'
const token = randomBytes(16).toString('hex')

let folder: string
let path: string
const started: ChildProcess[] = []
const output = { script: '', service: '' }

/** Kept to be ended. */
async function serve(): Promise<ChildProcess> {
  const child = await startServe(path, token, (text) => {
    output.service += text
  })
  started.push(child)
  return child
}

beforeAll(async () => {
  const python = await verlEnvironment()
  process.env['AWORLD_TRAIN_PYTHON'] = python
  folder = await mkdtemp(join(tmpdir(), 'aworld-train-by-hand-'))
  const trainer = new AgentTrainer({
    agent: './agent.yaml',
    config: './grpo_trainer.yaml',
    trainDataset: join(repository, 'examples/periodic-table/data/train.jsonl'),
    baseDirectory: project,
    runPath: folder,
    name: 'pair',
  })
  ;({ path } = await trainer.dryRun())
  const port = await moveServe(path)
  const service = await serve()
  const script = spawn('bash', [join(path, 'run.sh')], {
    cwd: folder,
    env: {
      ...process.env,
      AWORLD_TRAIN_CHANNEL: `ws://127.0.0.1:${port}/v1/channel`,
      AWORLD_TRAIN_CHANNEL_TOKEN: token,
      AWORLD_TRAIN_INCARNATION: incarnation,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  started.push(script)
  for (const stream of [script.stdout, script.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      output.script += text
    })
  const ended = new Promise<number | null>((resolve) => script.once('close', resolve))
  let over = false
  void ended.then(() => {
    over = true
  })
  while (stepsDone(path).length === 0 && !over) await sleep(50)
  // In the middle of step 2: what it asks for is under way.
  service.kill('SIGKILL')
  await sleep(500)
  if (!over) await serve()
  const code = await ended
  if (code !== 0) throw new Error(`run.sh ended with ${code}:\n${output.script.slice(-8000)}\n${output.service.slice(-2000)}`)
}, 900_000)

afterAll(async () => {
  for (const child of started) {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGTERM')
  }
  await sleep(500)
  await rm(folder, { recursive: true, force: true })
})

it('takes all its steps, although the service is killed in the second', () => {
  expect(stepsDone(path)).toEqual([1, 2, 3])
})

it('hands over two rows a rollout, and no rollout twice', () => {
  const { trained } = readLedger(path, incarnation)
  const keys = trained.flatMap(({ keys }) => keys)
  expect(trained.map(({ step }) => step)).toEqual([1, 2, 3])
  expect(keys).toHaveLength(3 * 4 * 4)
  expect(new Set(keys.map(({ key }) => key)).size).toBe(keys.length)
  expect(new Set(keys.map(({ rows }) => rows))).toEqual(new Set([2]))
})

it('takes two optimiser updates a step, since two rows a rollout fill two mini-batches', async () => {
  const { trained } = readLedger(path, incarnation)
  expect(trained.map(({ rowsPadded }) => rowsPadded)).toEqual([0, 0, 0])
  const state = join(path, 'checkpoints/global_step_3/actor/optim_world_size_1_rank_0.pt')
  const script = 'import sys, torch; print(float(next(iter(torch.load(sys.argv[1], weights_only=False)["state"].values()))["step"]))'
  const { stdout } = await promisify(execFile)(process.env['AWORLD_TRAIN_PYTHON']!, ['-c', script, state])
  expect(Number(stdout)).toBe(3 * 2)
})

it('scores in Python: rewards are shares, and differ', async () => {
  const run = await readRun(join(path, 'service', 'rollouts'))
  const rewards = Array.from(run.episodes(), ({ reward }) => reward)
  run.close()
  expect(new Set(rewards).size).toBeGreaterThan(3)
  expect(rewards.every((reward) => reward !== null && reward >= 0 && reward <= 1)).toBe(true)
})

it('accounts for every token, those that died with the service by name', async () => {
  const run = await readRun(join(path, 'service', 'rollouts'))
  const { ledger, trainedTwice, logprobDifference } = toTokenLedger({
    ledgers: [readLedger(path, incarnation)],
    incarnations: [{ incarnation, resumedFromStep: 0 }],
    calls: run.calls(),
    episode: (key) => run.episode(key),
    rows: { rows: 'all', limits, reward: 'service' },
  })
  run.close()
  expect(ledger.unexplained).toBe(0)
  expect(trainedTwice).toEqual([])
  expect(ledger.trained).toBeGreaterThan(0)
  expect(logprobDifference.first).toBeLessThanOrEqual(1e-4)
})

it('translates what verl has renamed since, and says where each value comes from', async () => {
  const text = await readFile(join(path, 'final_trainer.yaml'), 'utf8')
  expect(parse(text)).toMatchObject({ reward: { custom_reward_function: { name: 'early_letters' } } })
  expect(text).toMatch(/custom_reward_function/)
  expect((await readdir(path)).sort()).toEqual(
    expect.arrayContaining(['agent.source.yaml', 'agent.yaml', 'final_trainer.yaml', 'run.sh', 'serve.yaml', 'train_data.parquet']),
  )
  expect(await readFile(join(path, 'agent.yaml'), 'utf8')).toMatch(/_target_: aworld_train_bridge\.verl\.agent_loop\.AworldTrainAgentLoop/)
  expect(parseChannelKey(readLedger(path, incarnation).trained[0]!.keys[0]!.key)).toMatchObject({ incarnation, partition: 'train' })
})
