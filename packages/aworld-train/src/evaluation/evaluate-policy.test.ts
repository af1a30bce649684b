import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Agent, type AgentFunctionContext } from '@aworld-train/agent'
import type { AgentTask, EvaluationWithResults } from '@aworld-train/core'
import { openDashboard, openFolder } from '@aworld-train/dashboard'
import { readRun } from '@aworld-train/store'
import { loadDataset, readEvaluation } from '@aworld-train/training'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { AgentTrainer } from '../agent-trainer.ts'
import type { TrainableAgent } from '../load/load-agent.ts'

const shipped = fileURLToPath(new URL('../../../../examples/periodic-table/model', import.meta.url))
let folder: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'aworld-train-inference-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true, maxRetries: 3 }))

const dataset = [
  { id: 'a', prompt: 'What is the symbol of gold?', answer: 'Au' },
  { id: 'b', prompt: 'What is the symbol of tin?', answer: 'Sn' },
]

/** The runs of the test, as a dashboard lists them. */
async function listed(): Promise<unknown> {
  const dashboard = await openDashboard({ below: join(folder, 'runs') })
  try {
    const { origin, searchParams } = new URL(dashboard.url)
    return await (await fetch(`${origin}/api/runs`, { headers: { authorization: `Bearer ${searchParams.get('token')}` } })).json()
  } finally {
    await dashboard.close()
  }
}

const create = (model: string, agent: TrainableAgent = new Agent({ name: 'chemist', maxTurns: 1 }), maxTokens = 4) =>
  AgentTrainer.create({
    agent,
    trainDataset: [{ id: 'c', prompt: 'What is the symbol of iron?', answer: 'Fe' }],
    rewardFunc: () => 1,
    config: { model: { path: model }, engine: { threads: 1, simd: 'plain' }, sampling: { maxTokens }, concurrency: 2 },
    samples: 2,
    seed: 3,
    runPath: join(folder, 'runs'),
    trainEngineName: 'local',
  })

it('leaves a run that tells seed, sampling, counts, versions and events, and can be scored again', async () => {
  const { results, ...report } = await (await create(shipped)).inference(dataset)
  expect(report).toMatchObject({
    seed: 3,
    sampling: { temperature: 1, maxTokens: 4 },
    rollouts: 4,
    counts: { modelCalls: { agent: 4, gateway: 4, engine: 4 }, toolCalls: { environment: 0 } },
    versions: { node: process.version.slice(1) },
    tokenReport: { turns: 4, roots: 4, continuations: 0, branches: {} },
  })
  expect(JSON.parse(readFileSync(join(report.path, 'report.json'), 'utf8'))).toEqual(report)
  expect((await readEvaluation(report.path)).rows).toEqual(results)
  expect(results.map(({ taskId, sample }) => `${taskId}${sample}`)).toEqual(['a0', 'a1', 'b0', 'b1'])
  expect(readFileSync(join(report.path, 'events.jsonl'), 'utf8')).toMatch(/"evaluation-start"[\s\S]*"rollout-end"[\s\S]*"evaluation-end"/)
  const client = await openFolder(report.path)
  const view = (await client.evaluation())!
  client.close()
  expect(report).toMatchObject({ ...view.numbers, comparison: view.comparison, times: { wallMs: view.wallMs } })
  expect(view.tasks.flatMap(({ id, cells }) => cells.map(({ sample, reward, rollout }) => [id, sample, reward, rollout]))).toEqual(
    results.map(({ taskId, sample, reward, rollout }) => [taskId, sample, reward, rollout]),
  )
  const { tasks, answers } = await loadDataset(join(report.path, 'test_data.parquet'))
  expect(tasks.map(({ id }) => [id, answers.get(id)?.groundTruth])).toEqual([
    ['a', 'Au'],
    ['b', 'Sn'],
  ])
  const run = readRun(report.path)
  try {
    expect([...run.episodes({ split: 'test' })].map(({ taskId }) => taskId)).toEqual(['a', 'a', 'b', 'b'])
  } finally {
    run.close()
  }
})

it('reports what an agent does to its own record', async () => {
  const forgetful = async (_task: AgentTask, { baseUrl, apiKey }: AgentFunctionContext) => {
    for (const content of ['What is gold?', 'What is tin?', 'What is tin?']) {
      const body = JSON.stringify({ model: 'any', temperature: 0.5, messages: [{ role: 'user', content }] })
      await fetch(`${baseUrl}/chat/completions`, { method: 'POST', headers: { authorization: `Bearer ${apiKey}` }, body })
    }
    return 'Sn'
  }
  const { tokenReport } = await (await create(shipped, forgetful)).inference(dataset)
  expect(tokenReport).toMatchObject({ turns: 12, roots: 4, continuations: 0, branches: { 'no-match': 8 }, repeated: 4 })
  expect(tokenReport.ignored).toEqual({ temperature: 12 })
})

it("shows a GAIA-shaped row's question, file and declared data to the agent, all the rest to the reward alone", async () => {
  const row = {
    task_id: 'g',
    Question: 'What is the symbol of gold?',
    Level: 3,
    'Final answer': 'secret-1',
    file_name: 'gold.png',
    'Annotator Metadata': { Steps: 'secret-2' },
    extra_info: { answer: 'secret-3', split: 'validation' },
    reward_model: { style: 'secret-4', ground_truth: 'secret-1' },
    data: { hint: 'yellow' },
  }
  const scored: unknown[] = []
  writeFileSync(join(folder, 'gold.png'), 'image')
  const trainer = await AgentTrainer.create({
    baseDirectory: folder,
    async agent(task, context) {
      const body = JSON.stringify({ model: 'any', messages: [{ role: 'user', content: task.input }] })
      const headers = { authorization: `Bearer ${context.apiKey}` }
      await (await fetch(`${context.baseUrl}/chat/completions`, { method: 'POST', headers, body })).text()
      return JSON.stringify({ task, context })
    },
    trainDataset: [row],
    rewardFunc: (_source, _solution, groundTruth, extraInfo) => scored.push(groundTruth, extraInfo),
    config: { model: { path: shipped }, engine: { threads: 1, simd: 'plain' }, sampling: { maxTokens: 64 }, concurrency: 1 },
    runPath: join(folder, 'runs'),
    trainEngineName: 'local',
  })
  const { results } = await trainer.inference([row])
  expect(results[0]?.answer).not.toMatch(/secret|Annotator|Level/)
  expect(JSON.parse(results[0]?.answer ?? '')).toMatchObject({
    task: { id: 'g', data: { hint: 'yellow' }, files: ['gold.png'] },
  })
  expect(scored).toEqual(['secret-1', { Level: 3, 'Annotator Metadata': { Steps: 'secret-2' }, answer: 'secret-3', split: 'validation' }])
})

it('evaluates the test set of a training where no other is named, in whose place training data never stands', async () => {
  const trainer = await create(shipped)
  await expect(trainer.inference()).rejects.toMatchObject({
    code: 'DATASET_INVALID',
    message: expect.stringContaining('Training data never stands in'),
  })
})

it('leaves nothing where the model cannot be opened', async () => {
  const model = join(folder, 'model')
  cpSync(shipped, model, { recursive: true })
  const trainer = await create(model)
  writeFileSync(join(model, 'model.safetensors'), 'damaged')
  await expect(trainer.inference(dataset)).rejects.toMatchObject({ code: 'CHECKPOINT_CORRUPT' })
  expect(readdirSync(join(folder, 'runs'))).toEqual([])
})

it('says how to serve a model that the engine in the box cannot run', async () => {
  const model = join(folder, 'model')
  cpSync(shipped, model, { recursive: true })
  const trainer = await create(model)
  const config = JSON.parse(readFileSync(join(model, 'config.json'), 'utf8')) as object
  writeFileSync(join(model, 'config.json'), JSON.stringify({ ...config, architectures: ['MambaForCausalLM'], model_type: 'mamba' }))
  await expect(trainer.inference(dataset)).rejects.toThrow(/cannot be run here: .* "vllm serve .*model", and name its address/s)
})

it('is a run that a dashboard shows: finished, with its reward by kind, pass@k and episodes', async () => {
  const report = await (await create(shipped, undefined, 64)).inference(dataset)
  expect(report).toMatchObject({
    kind: 'evaluation',
    model: shipped,
    checkpoint: null,
    passAtK: { 1: { value: 1, tasks: 2 }, 2: { value: 1 } },
  })
  expect(await listed()).toMatchObject([{ kind: 'evaluation', status: 'finished', problem: null, rollouts: 4, after: 1 }])
  const folderClient = await openFolder(report.path)
  try {
    const { kind, status, evaluations, details, rollouts } = await folderClient.summary()
    expect({ kind, status, done: rollouts.done }).toEqual({ kind: 'evaluation', status: 'finished', done: 4 })
    expect(evaluations).toMatchObject([{ name: 'eval', tasks: 2, rollouts: 4, reward: 1, passAtK: { 1: 1, 2: 1 } }])
    expect(details).toMatchObject({ agent: 'chemist', tasks: '2 x 2' })
  } finally {
    folderClient.close()
  }
})

it('is about the weights that train() left, and names them', async () => {
  let scored = 0
  const trainer = (checkpoint?: string) =>
    AgentTrainer.create({
      agent: new Agent({ name: 'chemist', maxTurns: 1 }),
      trainDataset: [{ id: 'c', prompt: 'What is the symbol of iron?', answer: 'Fe' }],
      rewardFunc: () => scored++ % 2,
      config: {
        model: { path: shipped },
        engine: { threads: 1, simd: 'plain' },
        sampling: { maxTokens: 4 },
        training: { promptsPerStep: 1, samplesPerPrompt: 2, learningRate: 0.1 },
        evaluation: { before: false },
        concurrency: 1,
      },
      checkpoint,
      samples: 4,
      seed: 3,
      steps: 1,
      runPath: join(folder, 'runs'),
      trainEngineName: 'local',
      onEvent: () => {},
    })
  const answers = ({ results }: EvaluationWithResults) => results.map(({ answer }) => answer)
  const untrained = await (await trainer()).inference(dataset)
  const one = await trainer()
  const trained = await one.train()
  expect(trained).toMatchObject({ kind: 'training', model: shipped, checkpoint: 'checkpoints/step-000001' })
  const checkpoint = join(trained.path, 'checkpoints/step-000001')
  const after = await one.inference(dataset)
  expect(after).toMatchObject({ model: shipped, checkpoint })
  expect(answers(after)).toEqual(answers(await (await trainer(checkpoint)).inference(dataset)))
  expect(answers(after)).not.toEqual(answers(untrained))
  expect(untrained).toMatchObject({ model: shipped, checkpoint: null })
})

it('says why rollouts failed, with the file and line that threw, and ends where all of them did', async () => {
  const agent = join(folder, 'agent.ts')
  writeFileSync(
    agent,
    `export async function solve(task: { id: string }) {
  const id: string = task.id
  if (id !== 'never') throw new Error('No unit in ' + id)
  return ''
}
`,
  )
  const failing = await create(shipped, `${agent}#solve`)
  const failures = [
    { code: 'AGENT_FAILED', count: 4, rollout: 'evaluation/eval/0/0', message: 'Agent "agent" threw: No unit in a', source: `${agent}:3` },
  ]
  await expect(failing.inference(dataset)).rejects.toMatchObject({ code: 'EVALUATION_FAILED', details: { failures } })
  const [name] = readdirSync(join(folder, 'runs'))
  const path = join(folder, 'runs', name as string)
  expect(JSON.parse(readFileSync(join(path, 'report.json'), 'utf8'))).toMatchObject({ failed: 4, failures, reward: null })
  expect(await listed()).toMatchObject([{ status: 'failed', problem: null }])
})

it.each(['function', 'module'])('names the line of a reward that threw, of a %s', async (form) => {
  const file = join(folder, 'reward.ts')
  writeFileSync(
    file,
    `export const grade = (_source: string, _solution: string, truth: string): number => {
  if (truth === 'Sn') throw new Error('No unit.')
  return 1
}
`,
  )
  const { grade } = (await import(file)) as { grade: () => number }
  const trainer = await AgentTrainer.create({
    agent: new Agent({ name: 'chemist', maxTurns: 1 }),
    trainDataset: dataset,
    rewardFunc: form === 'module' ? `${file}#grade` : grade,
    config: { model: { path: shipped }, engine: { threads: 1, simd: 'plain' }, sampling: { maxTokens: 64 }, concurrency: 2 },
    samples: 2,
    seed: 3,
    runPath: join(folder, 'runs'),
    trainEngineName: 'local',
  })
  const { failures, failed, reward } = await trainer.inference(dataset)
  expect({ failed, reward }).toEqual({ failed: 2, reward: 1 })
  expect(failures).toMatchObject([{ code: 'REWARD_FAILED', count: 2, rollout: 'evaluation/eval/1/0', source: `${file}:2` }])
})
