import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { stripTypeScriptTypes } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { toAgentProgram } from '@aworld-train/agent'
import * as aworldTrain from 'aworld-train'
import { beforeAll, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { repository } from './support/run-cli.ts'
import { makeTinyModel } from './support/tiny-model.ts'

type Agent = aworldTrain.Agent
interface Page {
  readonly alone: Agent
  readonly planner: Agent
  readonly shared: object
  readonly config: object
  readonly reward: { score(input: object): unknown }
  round(trained: string, path: string): { readonly agent: Agent; readonly config: object }
}

let page: Page
beforeAll(async () => {
  const text = await readFile(join(repository, 'docs/3.guides/training-swarms.md'), 'utf8')
  const blocks = [...text.matchAll(/```ts\n([\s\S]*?)```/g)].map(([, code]) => code!)
  const names = [...text.matchAll(/^export const (\w+)/gm)].map(([, name]) => name)
  const code = stripTypeScriptTypes(
    blocks
      .join('\n')
      .replace(/^import .*$/gm, '')
      .replace(/^export /gm, ''),
  )
  const given = { ...aworldTrain, z }
  page = new Function(...Object.keys(given), `${code}; return { ${names} }`)(...Object.values(given))
})

it('trains each step of the guide: an agent, a swarm with one policy, and one with a policy for each role', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'aworld-train-guide-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  for (const name of ['model', 'lead', 'reader']) await makeTinyModel(join(folder, name), { contextLength: 4096 })
  const train = async (agent: Agent, config: object) => {
    const trainer = new aworldTrain.AgentTrainer({
      agent,
      trainDataset: [{ id: 'a', prompt: 'Is 4 even?', answer: 'yes' }],
      rewardFunc: (_source: string, answer: string, truth: string) => Number(answer === truth),
      trainEngineName: 'local',
      config: {
        ...config,
        sampling: { maxTokens: 4 },
        evaluation: { before: false, greedy: false },
        engine: { simd: 'plain', threads: 2 },
      },
      steps: 1,
      baseDirectory: folder,
      runPath: join(folder, 'runs'),
      onEvent: () => {},
    })
    return await trainer.train<aworldTrain.RunReport>()
  }
  const expected = { status: 'finished', ledger: { unexplained: 0 } }
  expect(await train(page.alone, page.shared)).toMatchObject(expected)
  const shared = await train(page.planner, page.shared)
  expect(shared).toMatchObject(expected)
  expect(shared.policies).toBeUndefined()
  const several = await train(page.planner, page.config)
  expect(several).toMatchObject({ ...expected, policies: { lead: { trainable: true }, reader: { trainable: true } } })
})

it('has a reward that says what the readers earned', () => {
  const calls = [{ name: 'reader', isError: false }, { name: 'reader', isError: true }, { name: 'open' }]
  const given = { episode: { answer: '7', toolCalls: calls }, answer: { groundTruth: '7' } }
  expect(page.reward.score(given)).toEqual({ reward: 1, agents: { reader: 0.5 } })
})

it('changes over with a trainer of one policy, which refuses two and names the guide', async () => {
  for (const trained of ['reader', 'lead'])
    expect(toAgentProgram(page.round(trained, `./${trained}`).agent).agents.map(({ trainable, model }) => trainable || model)).toEqual(
      trained === 'reader' ? ['lead', true] : [true, 'reader'],
    )
  for (const { readConfig } of aworldTrain.pythonTrainers) {
    const read = (config: object) => readConfig(config, { baseDirectory: '/', environment: {}, sections: aworldTrain.trainerSections })
    expect((await read(page.round('reader', './reader').config)).problems).toEqual([])
    const { problems } = await read(page.config)
    expect(existsSync(join(repository, /docs\/\S+\.md/.exec(problems[0]!)![0]))).toBe(true)
  }
})
