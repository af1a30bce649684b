// The main example with a judge in place of its reward: whole trainings by a rubric and by ranks, and one repeated from its recording.
import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { meanWithInterval, type RunReport } from '@aworld-train/core'
import { readRun } from '@aworld-train/store'
import { AgentTrainer, type AgentTrainerOptions, rankReward, rubricReward } from 'aworld-train'
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import definition from '../../../examples/periodic-table/aworld-train.config.ts'
import { repository } from '../../support/run-cli.ts'
import { startJudge } from '../../support/scripted-judge.ts'

let folder: string

interface Material {
  readonly reference: string
  readonly answer: string
  readonly candidates?: readonly { readonly id: string; readonly answer: string }[]
}

/** Knows right from wrong, and says so in numbers of its own. */
function grade(question: string): string {
  const { reference, answer, candidates } = JSON.parse(question) as Material
  const isRight = (text: string) => text.trim() === reference
  const scores = candidates
    ? Object.fromEntries(candidates.map((each) => [each.id, isRight(each.answer) ? 0.9 : 0.2]))
    : { correct: isRight(answer) ? 9 : 1, brief: 8 }
  return JSON.stringify({ scores })
}

beforeAll(async () => {
  process.env['AWORLD_TRAIN_SIMD'] = 'plain'
  process.env['JUDGE_KEY'] = 'judge-secret'
  folder = await mkdtemp(join(tmpdir(), 'aworld-train-judged-'))
})

afterAll(async () => {
  delete process.env['AWORLD_TRAIN_SIMD']
  delete process.env['JUDGE_KEY']
  await rm(folder, { recursive: true, force: true })
})

const rubric = rubricReward({ judge: 'judge', criteria: { correct: 'It is the reference.', brief: 'It says nothing else.' } })
const rank = rankReward({ judge: 'judge', rubric: 'An answer that is the reference is better than one that is not.' })

type Judge = Awaited<ReturnType<typeof startJudge>>

async function openJudge(): Promise<Judge> {
  const judge = await startJudge(grade)
  onTestFinished(() => judge.close())
  return judge
}

interface Training {
  readonly judge?: Judge
  readonly rewardFunc?: AgentTrainerOptions['rewardFunc']
  readonly cassette?: { readonly mode: 'record' | 'replay'; readonly cassette: string }
  readonly steps?: number
}

async function train({ judge, rewardFunc = definition.rewardFunc, cassette, steps }: Training): Promise<RunReport> {
  const trainer = await AgentTrainer.create({
    ...definition,
    baseDirectory: join(repository, 'examples/periodic-table'),
    rewardFunc,
    config: {
      ...(definition.config as object),
      ...(judge && { models: { judge: { ...judge.settings, ...cassette } } }),
      evaluation: { kindKey: 'kind', greedy: false, before: false },
    },
    validationDataset: undefined,
    ...(steps !== undefined && { steps, testDataset: undefined }),
    seed: 11,
    runPath: await mkdtemp(join(folder, 'runs-')),
    onEvent() {},
  })
  return await trainer.train()
}

/** Mean of right answers of the evaluation after the training, and its interval, whatever the reward made of them. */
async function rightAfter({ path }: Pick<RunReport, 'path'>) {
  const answers = new Map<string, string>()
  for (const line of (await readFile(join(repository, 'examples/periodic-table/data/test.jsonl'), 'utf8')).trim().split('\n')) {
    const { id, answer } = JSON.parse(line) as { id: string; answer: string }
    answers.set(id, answer)
  }
  const run = readRun(path)
  const after = [...run.episodes({ split: 'test' })].filter(({ rollout }) => rollout.startsWith('evaluation/after/'))
  run.close()
  const ofTask = Map.groupBy(after, ({ taskId }) => taskId)
  return meanWithInterval(
    Array.from(ofTask, ([id, episodes]) => episodes.filter(({ answer }) => answer?.trim() === answers.get(id)).length / episodes.length),
  )
}

it('a rubric and ranks of a judge teach what the exact reward does', async () => {
  const exact = await rightAfter(await train({}))
  const [least, most] = exact.interval!
  expect(exact.mean).toBeGreaterThanOrEqual(0.6)
  for (const rewardFunc of [rubric, rank]) {
    const { mean } = await rightAfter(await train({ judge: await openJudge(), rewardFunc }))
    expect(mean, rewardFunc.name).toBeGreaterThanOrEqual(least)
    expect(mean, rewardFunc.name).toBeLessThanOrEqual(most)
  }
}, 3_600_000)

it.each([
  ['a rubric', rubric],
  ['ranks', rank],
])('a training by %s repeats from its recording, byte for byte, and the key is in no file', async (name, rewardFunc) => {
  const judge = await openJudge()
  const path = join(folder, `${name}.jsonl`)
  const recorded = await train({ judge, rewardFunc, cassette: { mode: 'record', cassette: path }, steps: 3 })
  const calls = judge.questions.length
  delete process.env['JUDGE_KEY']
  onTestFinished(() => {
    process.env['JUDGE_KEY'] = 'judge-secret'
  })
  const replayed = await train({ judge, rewardFunc, cassette: { mode: 'replay', cassette: path }, steps: 3 })
  expect(judge.questions).toHaveLength(calls)
  const weights = async ({ path: run, checkpoint }: RunReport) => await readFile(join(run, checkpoint!, 'model.safetensors'))
  expect(Buffer.compare(await weights(replayed), await weights(recorded))).toBe(0)
  const rewardsOf = ({ path: run }: RunReport) => {
    const opened = readRun(run)
    const rewards = [...opened.episodes()].map(({ rollout, reward, answer }) => `${rollout} ${reward} ${answer}`).sort()
    opened.close()
    return rewards
  }
  expect(rewardsOf(replayed)).toEqual(rewardsOf(recorded))
  for (const file of await readdir(folder, { recursive: true })) {
    if (!(await stat(join(folder, file))).isFile()) continue
    expect((await readFile(join(folder, file))).includes('judge-secret'), file).toBe(false)
  }
})
