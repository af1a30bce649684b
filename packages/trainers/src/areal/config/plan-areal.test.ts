import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { PlanInputs } from '@aworld-train/core'
import { expect, test } from 'vitest'
import { writeRunFiles } from '../run/write-run-files.ts'
import { planAreal } from './plan-areal.ts'
import { readArealConfig } from './read-areal-config.ts'

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

test('general settings become keys of AReaL, and keys that are spelt win over them', async () => {
  const config = await readArealConfig(
    {
      training: {
        steps: 5,
        promptsPerStep: 4,
        samplesPerPrompt: 8,
        promptsPerUpdate: 2,
        learningRate: 1e-3,
        clipHigh: 0.3,
        warmupSteps: 1,
        finalLearningRateFraction: 0.2,
        advantage: 'group-relative',
      },
      sampling: { temperature: 0.9, maxTokens: 40 },
      areal: { 'actor.optimizer.lr': 2e-3, actor: { dtype: 'float32' } },
      limits: { maxTurns: 3 },
    },
    options,
  )
  expect(config.problems).toEqual([])
  expect(config.fields).toEqual({
    total_train_steps: 5,
    train_dataset: { batch_size: 4 },
    gconfig: { n_samples: 8, temperature: 0.9 },
    actor: {
      dtype: 'float32',
      ppo_n_minibatches: 2,
      eps_clip_higher: 0.3,
      optimizer: { lr: 2e-3, lr_scheduler_type: 'cosine', min_lr_ratio: 0.2 },
      reward_norm: { mean_level: 'group', std_level: 'group', group_size: `\${gconfig.n_samples}` },
    },
  })
  expect(config.settings).toMatchObject({ rows: 'last', maxCompletionTokens: 40, limits: { maxTurns: 3 } })
  const { fields } = await planAreal(config, run())
  expect(fields).toMatchObject({ actor: { optimizer: { warmup_steps_proportion: 0.2 } } })
})

test.each([
  [{ training: { klCoefficient: 0.1 } }, /reference model.*actor.kl_ctl/],
  [{ training: { entropyCoefficient: 0.1 } }, /no entropy term/],
  [{ training: { aggregation: 'sequence-mean' } }, /token-mean/],
  [{ training: { advantage: 'none' } }, /group-relative/],
  [{ reward: { native: true } }, /no reward here/],
  [{ rowz: 'last' }, /rowz.*rows/],
  [{ gconfig: { n_samples: 8 } }, /"gconfig" is no key of the configuration.*stands in the section "areal": areal\.gconfig/],
  [{ aworldTrain: { limits: {}, rows: 'last' } }, /"aworldTrain" is no section.*Write limits, rows there/],
])('%j is refused in a sentence', async (source, problem) => {
  const { problems } = await readArealConfig(source, options)
  expect(problems.join('\n')).toMatch(problem)
})

test('a YAML file of AReaL is brought under `areal:`, and at the top every key of it is told its place', async () => {
  const path = await mkdtemp(join(tmpdir(), 'areal yaml-'))
  const theirs = ['gconfig:', '  n_samples: 8', 'actor:', `  path: \${model_path}`, 'cluster:', '  n_nodes: 1']
  await writeFile(join(path, 'brought.yaml'), ['limits: {maxTurns: 3}', 'areal:', ...theirs.map((line) => `  ${line}`)].join('\n'))
  await writeFile(join(path, 'top.yaml'), theirs.join('\n'))
  const { fields, problems } = await readArealConfig(join(path, 'brought.yaml'), options)
  expect(problems).toEqual([])
  expect(fields).toEqual({ gconfig: { n_samples: 8 }, actor: { path: `\${model_path}` }, cluster: { n_nodes: 1 } })
  const top = await readArealConfig(join(path, 'top.yaml'), options)
  expect(top.problems).toEqual(
    ['gconfig', 'actor', 'cluster'].map((key) =>
      expect.stringMatching(`"${key}" is no key of the configuration.*stands in the section "areal": areal.${key}\\.`),
    ),
  )
  await rm(path, { recursive: true })
})

test('what the user left out follows from model, data and run', async () => {
  const epochs = await readArealConfig({ areal: { total_train_epochs: 2, train_dataset: { batch_size: 4 } } }, options)
  const plan = await planAreal(epochs, run())
  expect(plan).toMatchObject({ steps: 14, drawn: false, limits: { maxPromptTokens: 256, maxResponseTokens: 256 }, problems: [] })
  expect(plan.fields).toMatchObject({
    gconfig: { max_new_tokens: 256 },
    evaluator: { freq_steps: 14 },
    recover: { freq_steps: 10 },
    seed: 1,
  })
  expect((await planAreal(epochs, run({ test: null }))).fields).not.toHaveProperty('evaluator')
  expect((await planAreal(epochs, run({ train: { path: '', rows: 3 } }))).problems).toContainEqual(
    expect.stringContaining('3 training tasks'),
  )
  const long = { ...epochs, fields: { ...epochs.fields, gconfig: { max_new_tokens: 512 } } }
  expect((await planAreal(long, run())).problems).toContainEqual(expect.stringContaining('leaves nothing for a prompt'))
  const evaluated = await readArealConfig(
    { areal: { eval_gconfig: { n_samples: 3, temperature: 0.5 }, evaluator: { freq_epochs: 1 } } },
    options,
  )
  expect(await planAreal(evaluated, run())).toMatchObject({
    evaluation: { samples: 3, temperature: 0.5 },
    fields: { evaluator: { freq_epochs: 1 } },
  })
})

test('a number of steps beside epochs is only a limit, as AReaL has it; alone it is what is trained', async () => {
  const steps = async (source: object) => await planAreal(await readArealConfig({ areal: source }, options), run())
  expect(await steps({ total_train_steps: 99, total_train_epochs: 1, train_dataset: { batch_size: 4 } })).toMatchObject({ steps: 7 })
  expect(await steps({ total_train_steps: 99, train_dataset: { batch_size: 4 } })).toMatchObject({ steps: 99, drawn: true })
})

test('tasks of a number of steps are drawn here, the same for every start, as a mixture of kinds where one is set', async () => {
  const path = await mkdtemp(join(tmpdir(), 'areal files-'))
  const tasks = Array.from({ length: 6 }, (_, index) => ({
    version: 1 as const,
    id: `t${index}`,
    hash: '',
    input: `task ${index}`,
    data: { kind: index % 2 ? 'odd' : 'even' },
    dataSource: 'toy',
    extraInfo: {},
  }))
  const stratify = { key: 'kind', counts: { odd: 1, even: 2 } }
  const config = await readArealConfig({ training: { steps: 2, promptsPerStep: 3, samplesPerPrompt: 2, passes: 2, stratify } }, options)
  const plan = await planAreal(config, run({ path }))
  expect(plan.problems).toEqual([])
  expect(await writeRunFiles(plan, { train: { tasks, answers: new Map() }, test: null })).toEqual(['areal.json', 'train_tasks.jsonl'])
  const { order, ...written } = JSON.parse(await readFile(join(path, 'areal.json'), 'utf8')) as { order: string[] }
  expect(order).toHaveLength(6)
  expect(order.filter((id) => Number(id.slice(1)) % 2)).toHaveLength(2)
  expect(written).toMatchObject({ passes: 2, configuration: { train_dataset: { shuffle: false } } })
  const other = await readArealConfig({ training: { steps: 2, promptsPerStep: 4, samplesPerPrompt: 2, stratify } }, options)
  expect((await planAreal(other, run())).problems).toContainEqual(expect.stringContaining('counts 3 prompts, and a batch of AReaL has 4'))
  await rm(path, { recursive: true })
})

test('a Python that cannot be started is a problem of the configuration, unless the user stopped it', async () => {
  const findPython = async () => '/no such/python'
  expect((await readArealConfig({}, { ...options, findPython })).problems).toContainEqual(expect.stringMatching(/no such.*ENOENT/))
  const signal = AbortSignal.abort(new Error('stopped'))
  await expect(readArealConfig({}, { ...options, findPython, signal })).rejects.toThrow('stopped')
})

test('what AReaL has nothing for is a note', async () => {
  const { notes, problems } = await readArealConfig({ training: { dropZeroVariance: false }, evaluation: { greedy: true } }, options)
  expect(problems).toEqual([])
  for (const term of ['training.dropZeroVariance', 'evaluation.greedy'])
    expect(notes).toContainEqual(expect.stringContaining(`${term} has no effect with AReaL`))
})
