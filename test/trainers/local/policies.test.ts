// Two policies of one team, killed in the middle of anything, learn what they learn undisturbed.
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { RunReport } from '@aworld-train/core'
import { readRun } from '@aworld-train/store'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createRandom } from '../../../examples/terminal/random.ts'
import { runCli } from '../../support/run-cli.ts'
import { makeTinyModel } from '../../support/tiny-model.ts'
import { makeProject, type TinyProject, taskLines } from '../../support/tiny-project.ts'

const names = ['lead', 'reader']
const preload = new URL('../support/kill-in-save.ts', import.meta.url).href
let folder: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'aworld-train-policies-'))
  for (const [index, name] of names.entries()) await makeTinyModel(join(folder, name), { seed: 5 + index })
})
afterAll(() => rm(folder, { recursive: true, force: true, maxRetries: 3 }))

/** Two readers at once, which share a policy, and a lead that has another and reads what they say. Chance decides who is first. */
const agentText = `import { setTimeout } from 'node:timers/promises'
import { Agent, parallel, Swarm } from 'aworld-train'

const agentOf = (name, policy) => {
  const agent = new Agent({ name, systemPrompt: 'Answer.', maxTurns: 1, conf: { llmProvider: 'policy', llmModelName: policy } })
  return Object.assign(agent, { hooks: [{ beforeModel: () => setTimeout(Math.random() * 10) }] })
}
export const team = new Swarm(parallel(agentOf('north', 'reader'), agentOf('south', 'reader')), agentOf('writer', 'lead'))
`

/** A score that varies whatever tiny models say. */
const rewardText = 'export const score = (source: string, answer: string) => (answer.length % 3) / 2\n'

const projectOf = (steps: number) =>
  makeProject(folder, '', {
    definition: { agent: './agent.ts#team', rewardFunc: './reward.ts#score' },
    config: {
      model: undefined,
      policies: Object.fromEntries(names.map((name) => [name, { path: join(folder, name) }])),
      engine: { threads: 2 },
      training: { steps, checkpointEvery: 2, learningRate: 2e-3 },
      limits: { maxTurns: 3 },
      concurrency: 4,
    },
    files: { 'agent.ts': agentText, 'reward.ts': rewardText, 'train.jsonl': `${taskLines(8)}\n` },
  })

const train = ({ folder: project }: TinyProject, options: Parameters<typeof runCli>[1] = {}) =>
  runCli(['train', project, '--json', '--dashboard', 'off'], options)

interface Killed {
  /** Ends the process after events that it prints, or between the folders of the two policies of a checkpoint. */
  readonly at: { readonly events: number; readonly delayMs: number } | { readonly save: number }
}

/** Trains until the process is killed. Resolves to whether it was. */
async function trainUntil(project: TinyProject, { at }: Killed): Promise<boolean> {
  let events = 0
  const env = {
    NODE_OPTIONS: `--import=${preload}`,
    AWORLD_TRAIN_TEST_FOLDER: 'reader',
    ...('save' in at && { AWORLD_TRAIN_TEST_COUNT: String(at.save) }),
  }
  const { signal, code, stdout, stderr } = await train(project, {
    ...('save' in at && { env }),
    onLine(line, child) {
      if ('events' in at && line.startsWith('{') && ++events === at.events) setTimeout(() => child.kill('SIGKILL'), at.delayMs)
    },
  })
  expect(signal === 'SIGKILL' || code === 0, stdout + stderr).toBe(true)
  return signal === 'SIGKILL'
}

/** What of a run depends on its seed alone. */
async function outcomeOf(project: TinyProject, steps: number) {
  const [path, ...others] = (await project.runs()) as [string, ...string[]]
  expect(others).toEqual([])
  const report = JSON.parse(readFileSync(join(path, 'report.json'), 'utf8')) as RunReport
  const accounts = { ledger: { unexplained: 0 } }
  expect(report).toMatchObject({ status: 'finished', ...accounts, policies: { lead: accounts, reader: accounts } })
  const checkpoints = readdirSync(join(path, 'checkpoints')).sort()
  const hashes = Object.fromEntries(
    checkpoints.flatMap((checkpoint) => {
      expect(readdirSync(join(path, 'checkpoints', checkpoint)).sort(), checkpoint).toEqual(names)
      return names.flatMap((name) =>
        ['model', 'optimizer'].map((file) => {
          const place = join(checkpoint, name, `${file}.safetensors`)
          return [
            place,
            createHash('sha256')
              .update(readFileSync(join(path, 'checkpoints', place)))
              .digest('hex'),
          ]
        }),
      )
    }),
  )
  const run = readRun(path)
  try {
    const trained = run.steps().flatMap(({ rollouts }) => rollouts)
    expect(trained).toHaveLength(new Set(trained).size)
    const ofSeed = (metrics: Readonly<Record<string, number>>) =>
      Object.fromEntries(Object.entries(metrics).filter(([name]) => /^(policy\/.*|loss|trainedTokens|rewardMean)$/.test(name)))
    const curve = run.steps().map(({ metrics }) => ofSeed(metrics))
    expect(curve).toHaveLength(steps)
    const trainedTokens = names.map((name) => report.policies![name]!.ledger.trained)
    expect(Math.min(...trainedTokens)).toBeGreaterThan(0)
    return { hashes, curve, trainedTokens }
  } finally {
    run.close()
  }
}

/** Kills a run twice between the folders of its two policies, at its first checkpoint and at a later one, and then anywhere. */
async function trainKilled(project: TinyProject, kills: number, seed: number): Promise<void> {
  const random = createRandom(seed)
  const checkpoints = async () => {
    const [path] = await project.runs()
    const parent = join(path!, 'checkpoints')
    return Object.fromEntries(readdirSync(parent).map((name) => [name.slice(0, 12), readdirSync(join(parent, name)).sort()]))
  }
  // The folder of one policy is there, and no checkpoint is.
  expect(await trainUntil(project, { at: { save: 1 } })).toBe(true)
  expect(await checkpoints()).toEqual({ '.step-000000': ['lead'] })
  expect(await trainUntil(project, { at: { save: 2 } })).toBe(true)
  expect(await checkpoints()).toEqual({ 'step-000000': names, '.step-000002': ['lead'] })
  for (let kill = 2; kill < kills; kill++) {
    const at = { events: 1 + Math.floor(random() * 24), delayMs: random() * 8 }
    expect(await trainUntil(project, { at }), `kill ${kill} of seed ${seed}, after ${at.events} events`).toBe(true)
  }
  const { code, stdout, stderr } = await train(project)
  expect(code, stdout + stderr).toBe(0)
}

async function expectSame(kills: number, steps: number): Promise<void> {
  const seed = Number(process.env['AWORLD_TRAIN_TEST_SEED'] ?? 20_261_128)
  const whole = await projectOf(steps)
  expect((await train(whole)).code).toBe(0)
  const undisturbed = await outcomeOf(whole, steps)
  // Every step changes the weights of both, so that equal hashes mean something.
  for (const name of names)
    expect(
      undisturbed.curve.every((metrics) => metrics[`policy/${name}/gradNorm`]! > 0),
      JSON.stringify(undisturbed.curve),
    ).toBe(true)
  const killed = await projectOf(steps)
  await trainKilled(killed, kills, seed)
  expect(await outcomeOf(killed, steps)).toEqual(undisturbed)
}

it('three kills change nothing of two policies, two of them between their folders of a checkpoint', { tags: 'quick' }, () =>
  expectSame(3, 6),
)

it('twenty kills change nothing of two policies', () => expectSame(20, 24), 1_800_000)
