// A planner that asks several readers at once, each of the two roles with a policy of its own.
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Episode, Trajectory } from '@aworld-train/core'
import { readRun } from '@aworld-train/store'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { makeTasks } from '../../../examples/source-readers/tasks.ts'
import { repository } from '../../support/run-cli.ts'
import { makeProject, trainWithKills, type WorkerKills } from '../support/train-with-kills.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'aworld-train-source-readers-'))
  const agents = `import { Agent, LoopableAgent, parallel, Swarm } from 'aworld-train'
import { planner, reader } from ${JSON.stringify(join(repository, 'examples/source-readers/agents.ts'))}
const policy = (llmModelName) => ({ conf: { llmProvider: 'policy', llmModelName } })
const critic = new LoopableAgent({ name: 'critic', systemPrompt: 'You read one page.', loopPoint: 'writer', maxRunTimes: 2, ...policy('reader') })
const writer = new Agent({ name: 'writer', systemPrompt: 'You add what your readers find.', ...policy('lead') })
const other = new Agent({ name: 'other', systemPrompt: 'You read one page.', ...policy('reader') })
export const workflow = new Swarm(parallel(planner, other), writer, critic)
export { planner }
`
  await symlink(join(repository, 'node_modules'), join(folder, 'node_modules'))
  await writeFile(join(folder, 'agents.ts'), agents)
  await writeFile(
    join(folder, 'delayed.ts'),
    `import { setTimeout } from 'node:timers/promises'
${agents}
const wait = () => setTimeout(Math.random() * 20)
for (const agent of [...workflow.agents, reader]) Object.assign(agent, { hooks: [{ beforeModel: wait, beforeTool: wait }] })
`,
  )
  // A score that even a poor policy varies in, so that every step changes the weights.
  await writeFile(join(folder, 'reward.ts'), 'export const lastDigit = (source: string, answer: string) => Number(answer.at(-1)) || 0\n')
})
afterAll(() => rm(folder, { recursive: true, force: true, maxRetries: 3 }))

interface Place {
  readonly steps: number
  readonly threads: number
  /** Name of the program. Default: the planner. */
  readonly program?: string
  readonly delayed?: boolean
  readonly executor?: object
  readonly kills?: WorkerKills
}

/** Trains the swarm. Resolves to what depends on the seed alone, and the run. */
async function train(name: string, { steps, threads, program = 'planner', delayed = false, executor = {}, kills }: Place) {
  const project = await makeProject(join(folder, name), executor, steps, {
    example: 'source-readers',
    changes: {
      rewardFunc: `${folder}/reward.ts#lastDigit`,
      testDataset: makeTasks(8, 2),
      agent: `${folder}/${delayed ? 'delayed' : 'agents'}.ts#${program}`,
    },
    config: {
      engine: { threads },
      training: { promptsPerStep: 4, samplesPerPrompt: 4 },
      // The cache has one row for each rollout that may run, and invocations are more than rollouts.
      concurrency: 128,
    },
  })
  const { path, result, report, killed, attempts } = await trainWithKills(project, kills)
  const run = readRun(path)
  const episodes = [...run.episodes({ split: 'train' })].toSorted((a, b) => (a.rollout < b.rollout ? -1 : 1))
  run.close()
  expect(report.ledger).toMatchObject({ unexplained: 0 })
  return { same: { ...result, episodes: episodes.map(timeless) }, episodes, killed, attempts }
}

// Times, what a cache had, and which attempt it was: chance decides them.
const ofChance = new Set(['timing', 'firstTokenAt', 'usage', 'attempt'])

/** An episode without what chance decides. The ids of calls begin with a digest of the attempt. */
const timeless = (episode: Episode) =>
  JSON.stringify(episode, (key, value) => {
    if (ofChance.has(key)) return undefined
    return ArrayBuffer.isView(value) ? [...(value as Int32Array)] : value
  }).replaceAll(/call_[0-9a-f]{12}_/g, 'call_')

/** Share of the calls after the first of a trajectory that found their whole parent in the cache; its last token was never read. */
function wholeParents(trajectories: readonly Trajectory[]): number {
  const found = trajectories.flatMap(({ turns }) =>
    turns.flatMap(({ parent, usage }) => {
      const before = parent === null ? undefined : turns.find(({ index }) => index === parent)
      return before ? [usage.cachedTokens >= before.promptTokenIds.length + before.completionTokenIds.length - 1] : []
    }),
  )
  expect(found.length).toBeGreaterThan(20)
  return found.filter(Boolean).length / found.length
}

it('agents at work at once learn the same from the same seed: with other threads, delays and workers, some of them killed', {
  tags: 'quick',
}, async () => {
  const { same, episodes } = await train('here', { steps: 3, threads: 1 })
  expect(new Set(same.losses).size).toBe(3)
  const readers = episodes.flatMap(({ trajectories }) => trajectories.filter(({ startedBy }) => startedBy.length > 0))
  expect(episodes.some(({ trajectories }) => trajectories.length > 3)).toBe(true)
  expect(wholeParents(readers)).toBeGreaterThanOrEqual(0.9)

  const kills = { kills: 2, stepsBetween: 1 }
  const away = await train('away', { steps: 3, threads: 2, delayed: true, executor: { workerNum: 2, slots: 8 }, kills })
  expect(away.killed).toBe(2)
  expect(away.same).toEqual(same)
})

it('twenty kills of workers and eight threads change nothing', async () => {
  const { same } = await train('here-in-full', { steps: 22, threads: 8 })
  const kills = { kills: 20, stepsBetween: 1 }
  const away = await train('away-in-full', { steps: 22, threads: 2, delayed: true, executor: { workerNum: 2, slots: 8 }, kills })
  expect([away.killed, away.attempts > 0]).toEqual([20, true])
  expect(away.same).toEqual(same)
})

it('a workflow with a loop learns the same with other threads, delays and workers, three of them killed', async () => {
  const { same, episodes } = await train('workflow', { steps: 4, threads: 1, program: 'workflow' })
  expect(episodes.some(({ trajectories }) => trajectories.some(({ id }) => id === 'writer:2'))).toBe(true)
  const away = { delayed: true, executor: { workerNum: 2, slots: 8 }, kills: { kills: 3, stepsBetween: 1 } }
  const { same: elsewhere, killed } = await train('workflow-away', { steps: 4, threads: 2, program: 'workflow', ...away })
  expect(killed).toBe(3)
  expect(elsewhere).toEqual(same)
})
