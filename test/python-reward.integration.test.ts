import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { makeTinyModel } from './support/tiny-model.ts'
import { episodesOf, makeProject, openTrainer } from './support/tiny-project.ts'

const files = {
  'reward.ts': `export function exactAnswer(_dataSource: string, solutionStr: string, groundTruth: unknown): number {
  return solutionStr.trim() === groundTruth ? 1 : 0
}
`,
  'reward.py': `def exact_answer(data_source, solution_str, ground_truth, extra_info=None):
    return 1 if solution_str.strip() == ground_truth else 0
`,
}

it('the engine in the box scores and learns the same with a reward in TypeScript and in Python', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'aworld-train-python-reward-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true, maxRetries: 3 }))
  const model = await makeTinyModel(join(folder, 'model'))
  const train = async (rewardFunc: string) => {
    const project = await makeProject(folder, model, { files })
    const report = await (await openTrainer(project, { rewardFunc, seed: 7 })).train()
    const episodes = (await episodesOf(project)).map(
      ({ rollout, answer, reward }) => `${rollout.replace(/^[^/]*/, '')} ${answer} ${reward}`,
    )
    return { curve: report.curve.map(({ reward }) => reward), episodes: episodes.sort() }
  }
  const inTypeScript = await train('./reward.ts#exactAnswer')
  const inPython = await train('./reward.py#exact_answer')
  expect(inPython).toEqual(inTypeScript)
  for (const reward of [0, 1]) expect(inPython.episodes.some((line) => line.endsWith(` ${reward}`))).toBe(true)
})
