import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { PlanInputs } from '@aworld-train/core'
import { expect, test } from 'vitest'
import { trlTrainer } from '../trl-trainer.ts'

const { readConfig: readTrlConfig, plan: planTrl, writeFiles: writeRunFiles } = trlTrainer

const options = { baseDirectory: '/project', environment: {} }
const run = (more: Partial<PlanInputs> = {}): PlanInputs => ({
  path: '/runs/one',
  name: 'one',
  agent: { name: 'agent', module: null, directory: '/project', source: null },
  model: '/model',
  train: { path: '', rows: 30 },
  test: { path: '', rows: 4 },
  reward: null,
  bridgeDirectory: '/bridge',
  contextLength: 512,
  ...more,
})

test('general settings become fields of GRPOConfig, and fields that are spelt win over them', async () => {
  const config = await readTrlConfig(
    {
      training: {
        steps: 5,
        promptsPerStep: 4,
        samplesPerPrompt: 8,
        passes: 2,
        promptsPerUpdate: 2,
        learningRate: 1e-3,
        clipHigh: 0.3,
        warmupSteps: 1,
      },
      sampling: { temperature: 0.9, maxTokens: 40 },
      trl: { learning_rate: 2e-3, lora: { r: 8 } },
      limits: { maxTurns: 3 },
    },
    options,
  )
  expect(config.problems).toEqual([])
  expect(config.fields).toEqual({
    num_generations: 8,
    per_device_train_batch_size: 16,
    steps_per_generation: 2,
    num_iterations: 2,
    max_steps: 20,
    warmup_steps: 4,
    learning_rate: 2e-3,
    epsilon_high: 0.3,
    temperature: 0.9,
  })
  expect(config.section).toEqual({ r: 8 })
  expect(config.settings).toMatchObject({ rows: 'last', maxCompletionTokens: 40, limits: { maxTurns: 3 } })
  expect(config.notes).toContainEqual(expect.stringContaining('5 steps, each a batch of rollouts trained in 4 updates, are 20 steps'))
})

test('steps that the caller sets are batches of rollouts, as on every trainer, and a note says how many updates they are', async () => {
  const source = { training: { steps: 5, promptsPerStep: 4, passes: 2 } }
  const { fields, notes } = await readTrlConfig(source, { ...options, overrides: { steps: 3 } })
  expect(fields['max_steps']).toBe(6)
  expect(notes.filter((note) => note.includes('counts updates'))).toEqual([
    'TRL counts updates: 3 steps, each a batch of rollouts trained in 2 updates, are 6 steps in its report.',
  ])
  const spelt = { trl: { per_device_train_batch_size: 8, gradient_accumulation_steps: 2, max_steps: 9 } }
  const config = await readTrlConfig(spelt, { ...options, overrides: { steps: 3 } })
  expect([config.fields['max_steps'], config.notes]).toEqual([3, []])
})

test.each([
  [{ training: { promptsPerStep: 4, promptsPerUpdate: 3 } }, /does not divide/],
  [{ training: { advantage: 'leave-one-out' } }, /leave-one-out.*group-relative/],
  [{ reward: { native: true } }, /no reward here/],
  [{ rowz: 'last' }, /rowz.*rows/],
  [{ num_generations: 8 }, /"num_generations" is no key of the configuration.*stands in the section "trl": trl\.num_generations/],
  [{ aworldTrain: { limits: {}, rows: 'last' } }, /"aworldTrain" is no section.*Write limits, rows there/],
  [{ trl: { aworldTrain: { rows: 'last' } } }, /"aworldTrain" is no section/],
  [['max_steps=1'], /neither a path nor an object/],
])('%j is refused in a sentence', async (source, problem) => {
  const { problems } = await readTrlConfig(source, options)
  expect(problems.join('\n')).toMatch(problem)
})

test('what the user left out follows from model, data and run', async () => {
  const config = await readTrlConfig(
    { trl: { num_train_epochs: 2, per_device_train_batch_size: 16, gradient_accumulation_steps: 2 } },
    options,
  )
  const plan = await planTrl(config, run())
  // A generation has 32 rows of 4 prompts, so an epoch of 30 tasks has 7, each trained in one update.
  expect(plan).toMatchObject({ steps: 14, limits: { maxPromptTokens: 256, maxResponseTokens: 256 }, logprobTolerance: null, problems: [] })
  expect(plan.fields).toMatchObject({ max_completion_length: 256, eval_strategy: 'steps', eval_steps: 14, eval_on_start: true, seed: 1 })
  const none = await planTrl(config, run({ test: null, contextLength: null }))
  expect(none.fields).not.toHaveProperty('eval_strategy')
  expect((await planTrl({ ...config, fields: { ...config.fields, max_completion_length: 512 } }, run())).problems).toContainEqual(
    expect.stringContaining('leaves nothing for a prompt'),
  )
})

test('a checkpoint is written every ten batches where nothing is said of it, and at the end at least', async () => {
  const fieldsOf = async (source: object) => (await planTrl(await readTrlConfig(source, options), run())).fields
  expect(await fieldsOf({ trl: { per_device_train_batch_size: 8, steps_per_generation: 4, num_iterations: 2 } })).toMatchObject({
    save_steps: 80,
  })
  expect(await fieldsOf({ trl: { save_steps: 3 } })).toMatchObject({ save_steps: 3 })
  expect(await fieldsOf({ trl: { save_strategy: 'epoch' } })).not.toHaveProperty('save_steps')
  expect(await fieldsOf({ training: { checkpointEvery: null } })).toMatchObject({ save_strategy: 'steps', save_steps: 1_000_000_000 })
})

test('a Python that cannot be started is a problem of the configuration, unless the user stopped it', async () => {
  const findPython = async () => '/no such/python'
  expect((await readTrlConfig({}, { ...options, findPython })).problems).toContainEqual(expect.stringMatching(/no such.*ENOENT/))
  const signal = AbortSignal.abort(new Error('stopped'))
  await expect(readTrlConfig({}, { ...options, findPython, signal })).rejects.toThrow('stopped')
})

test('a rollout ends at its own limit of time', async () => {
  const plan = async (source: object) => (await planTrl(await readTrlConfig(source, options), run())).deadlineSeconds
  expect(await plan({ limits: { timeoutMs: 5_000 }, rolloutTimeoutMs: 9_000 })).toBe(5)
  expect(await plan({ rolloutTimeoutMs: 9_000 })).toBe(9)
})

test('what TRL has nothing for is a note', async () => {
  const { notes, problems } = await readTrlConfig(
    { training: { maxSampleTokens: 9, dropZeroVariance: false }, evaluation: { topP: 0.5, topK: 3, greedy: true } },
    options,
  )
  expect(problems).toEqual([])
  for (const term of ['training.maxSampleTokens', 'training.dropZeroVariance', 'evaluation.topP', 'evaluation.topK', 'evaluation.greedy'])
    expect(notes).toContainEqual(expect.stringContaining(`${term} has no effect with TRL`))
})

test('a mixture of kinds is drawn here, the same for every start', async () => {
  const path = await mkdtemp(join(tmpdir(), 'trl files-'))
  const tasks = Array.from({ length: 6 }, (_, index) => ({
    version: 1 as const,
    id: `t${index}`,
    hash: '',
    input: `task ${index}`,
    data: { kind: index % 2 ? 'odd' : 'even' },
    dataSource: 'toy',
    extraInfo: {},
  }))
  const train = { tasks, answers: new Map() }
  const stratify = { key: 'kind', counts: { odd: 1, even: 2 } }
  const config = await readTrlConfig({ training: { steps: 2, promptsPerStep: 3, samplesPerPrompt: 2, passes: 2, stratify } }, options)
  const plan = await planTrl(config, run({ path }))
  expect(plan.problems).toEqual([])
  expect(plan.fields['shuffle_dataset']).toBe(false)
  const files = await writeRunFiles(plan, { train, test: null })
  expect(files).toEqual(['trl.json', 'train_tasks.jsonl'])
  const { order } = JSON.parse(await readFile(join(path, 'trl.json'), 'utf8')) as { order: string[] }
  expect(order).toHaveLength(6)
  expect(order.filter((id) => Number(id.slice(1)) % 2)).toHaveLength(2)
  const other = await readTrlConfig({ training: { steps: 2, promptsPerStep: 4, samplesPerPrompt: 2, stratify } }, options)
  expect((await planTrl(other, run())).problems).toContainEqual(expect.stringContaining('counts 3 prompts, and a batch of TRL has 4'))
  await rm(path, { recursive: true })
})
