// Two policies that a trainer of one trains in turns: one agent is trained while the other is a frozen model behind `serve`, then they change
// over.
import { createHash } from 'node:crypto'
import { cp, mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { RunReport } from '@aworld-train/core'
import { readSafetensors } from '@aworld-train/engines/local'
import { readRun } from '@aworld-train/store'
import { Agent, AgentTrainer, Swarm } from 'aworld-train'
import { expect, onTestFinished, test } from 'vitest'
import { verlEnvironment } from '../../support/python-environment.ts'
import { repository, runCli } from '../../support/run-cli.ts'
import { startCommand } from '../../support/start-command.ts'
import { evenTokens } from './swarm/reward.ts'

type Name = 'lead' | 'reader'

interface Round {
  readonly trained: Name
  /** Folders of the models at the start of the round. */
  readonly models: Readonly<Record<Name, string>>
}

/** A reader and a lead one after another. The trained one asks for the policy, the other for the gateway's model of its name. */
function agentsOf(trained: Name): Swarm {
  const agentOf = (name: Name) =>
    new Agent({ name, maxTurns: 1, conf: { llmProvider: name === trained ? 'policy' : 'gateway', llmModelName: name } })
  return new Swarm(agentOf('reader'), agentOf('lead'))
}

async function hashOf(folder: string): Promise<string> {
  const hash = createHash('sha256')
  for (const name of (await readdir(folder)).toSorted()) hash.update(name).update(await readFile(join(folder, name)))
  return hash.digest('hex')
}

/** The largest change of a weight between two folders. */
async function changeOf(before: string, after: string): Promise<number> {
  const [old, changed] = await Promise.all([before, after].map((folder) => readSafetensors(join(folder, 'model.safetensors'))))
  const changes = Array.from(changed!.tensors, ([name, { data }]) => {
    const from = old!.tensors.get(name)!.data
    return data.reduce((largest, value, at) => Math.max(largest, Math.abs(value - from[at]!)), 0)
  })
  return Math.max(...changes)
}

/** Serves a folder behind a key on a free port until the test ends, or `close` is called. */
async function serve(folder: string) {
  process.env['ROUND_KEY'] = 'sixteen-letters-or-more'
  const command = startCommand(['serve', folder, '--port', '0', '--max-tokens', '12', '--key-env', 'ROUND_KEY'])
  const close = async () => {
    command.process.kill('SIGINT')
    await command.ended
  }
  onTestFinished(close)
  await command.says('Ctrl-C ends')
  return { baseUrl: /^baseURL +(\S+)/m.exec(command.shown())![1]!, close }
}

async function changeOver(trainEngineName: string): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'aworld-train-changing-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const start = (name: Name) => join(folder, name)
  for (const name of ['lead', 'reader'] as const)
    await cp(join(repository, 'examples/periodic-table/model'), start(name), { recursive: true })

  /** Trains one of both and resolves to the folder of its exported weights. */
  async function trainRound(round: number, { trained, models }: Round): Promise<string> {
    const other = trained === 'lead' ? 'reader' : 'lead'
    const before = await hashOf(models[other])
    const served = await serve(models[other])
    const report = await new AgentTrainer({
      agent: agentsOf(trained),
      rewardFunc: evenTokens,
      trainDataset: join(repository, 'examples/periodic-table/data/train.jsonl'),
      runPath: folder,
      name: `round-${round}`,
      trainEngineName,
      onEvent: () => {},
      config: {
        model: { path: models[trained] },
        models: { [other]: { baseUrl: served.baseUrl, model: other, apiKeyEnv: 'ROUND_KEY' } },
        training: { steps: 2, promptsPerStep: 4, samplesPerPrompt: 4, learningRate: 1e-3, evaluateEvery: null, checkpointEvery: 2 },
        sampling: { maxTokens: 12 },
        // A short answer is cut and has its share of even tokens all the same.
        reward: { unfinished: 'score' },
        evaluation: { before: false },
        verl: { smoke: true, data: { max_prompt_length: 192, max_response_length: 64 } },
      },
    }).train<RunReport>()
    await served.close()
    expect(report).toMatchObject({ status: 'finished', ledger: { unexplained: 0 } })
    expect(report.ledger!.trained).toBeGreaterThan(0)
    expect(report.tokenReport!.frozen[other]!.calls).toBeGreaterThanOrEqual(2 * 4 * 4)
    const run = readRun(report.path)
    const trajectories = [...run.episodes()].flatMap((episode) => episode.trajectories)
    run.close()
    expect(new Set(trajectories.map(({ agent, trainable }) => `${agent} ${trainable}`))).toEqual(
      new Set([`${trained} true`, `${other} false`]),
    )
    const exported = join(folder, `${trained}-${round}`)
    const { code, stdout, stderr } = await runCli(['export', report.path, '--what', 'model', '--to', exported])
    expect(code, stdout + stderr).toBe(0)
    expect(await hashOf(models[other])).toBe(before)
    expect(await changeOf(models[trained], exported)).toBeGreaterThan(1e-5)
    return exported
  }

  const reader = await trainRound(1, { trained: 'reader', models: { lead: start('lead'), reader: start('reader') } })
  const lead = await trainRound(2, { trained: 'lead', models: { lead: start('lead'), reader } })
  expect(await changeOf(reader, lead)).toBeGreaterThan(1e-5)
}

test('two rounds with the engine in the box: each trains one, and leaves the other as it was', { tags: 'quick' }, () => changeOver('local'))

test('two rounds with the real verl: each trains one, and leaves the other as it was', async () => {
  process.env['AWORLD_TRAIN_PYTHON'] = await verlEnvironment()
  await changeOver('verl')
}, 1_500_000)
