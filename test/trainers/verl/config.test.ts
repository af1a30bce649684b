// @module-tag quick
// verl's configuration as the installed verl composes, resolves and validates it; nothing is trained.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { planVerl } from '../../../packages/trainer-verl/src/config/plan-verl.ts'
import { readVerlConfig } from '../../../packages/trainer-verl/src/config/read-verl-config.ts'
import { resolveEachWithPython, resolveWithPython } from '../../../packages/trainer-verl/src/config/resolve-with-python.ts'
import { verlRun } from '../../../packages/trainer-verl/src/config/verl-run.test-support.ts'
import { testedSchema } from '../../../packages/trainer-verl/src/config/verl-schema.ts'
import { verlEnvironment } from '../../support/python-environment.ts'

const published = fileURLToPath(new URL('../../../packages/trainer-verl/src/config/published-run.fixture.sh', import.meta.url))
const model = { 'actor_rollout_ref.model.path': 'Qwen/Qwen3-4B' }

let python: string
let directory: string
beforeAll(async () => {
  python = await verlEnvironment()
  directory = mkdtempSync(join(tmpdir(), 'aworld-train-verl-schema-'))
})
afterAll(() => rmSync(directory, { recursive: true, force: true }))

const planOf = async (source: Parameters<typeof readVerlConfig>[0]) => {
  const config = await readVerlConfig(source, { environment: {}, baseDirectory: directory })
  const plan = planVerl(config, verlRun())
  expect([...config.problems, ...plan.problems]).toEqual([])
  return plan
}

/** Without what the shell fills in at a launch. */
function comparable(tree: Readonly<Record<string, unknown>>): unknown {
  const copy = structuredClone(tree) as { ray_kwargs: { ray_init: { runtime_env: { env_vars?: unknown } } } }
  delete copy.ray_kwargs.ray_init.runtime_env.env_vars
  return copy
}

const sources: readonly (readonly [string, () => Parameters<typeof readVerlConfig>[0]])[] = [
  ['the published launch script', () => published],
  ['a model alone', () => model],
  [
    'our general terms',
    () => ({
      ...model,
      training: { steps: 4, samplesPerPrompt: 4, promptsPerStep: 8, finalLearningRateFraction: 0.1, klCoefficient: 0.01, epsilon: 1e-7 },
      evaluation: { temperature: 0.5 },
    }),
  ],
  [
    'a hybrid layout',
    () => ({ ...model, aworldTrain: { layout: { schedule: 'colocate_async', trainer: { gpus: 8 }, rollout: { tensorParallel: 2 } } } }),
  ],
  [
    'the layout of two nodes',
    () => ({
      ...model,
      aworldTrain: { layout: { mode: 'standalone', trainer: { gpus: 8 }, rollout: { gpus: 8, tensorParallel: 2 }, staleness: 1 } },
    }),
  ],
  ['a colocated layout', () => ({ ...model, aworldTrain: { layout: { mode: 'colocated', trainer: { gpus: 4 }, rollout: { gpus: 4 } } } })],
  ['a run on CPU', () => ({ ...model, aworldTrain: { smoke: true } })],
  ['a native reward', () => ({ ...model, 'custom_reward_function.path': '/r.py', aworldTrain: { reward: { native: true } } })],
  [
    'odd texts',
    () => ({
      ...model,
      'trainer.project_name': `it's "odd" \\ $x [a], {b}: #c`,
      'data.apply_chat_template_kwargs': { enable_thinking: false, note: "it's" },
    }),
  ],
]

describe('the installed verl', () => {
  it('has the defaults and keys that are committed', async () => {
    const { schema, errors } = await resolveWithPython({ python, schema: true })
    expect(errors).toEqual([])
    expect(schema).toEqual(testedSchema)
  })

  it('accepts what we render, and resolves it as we do', async () => {
    const plans = await Promise.all(sources.map(async ([name, source]) => ({ name, plan: await planOf(source()) })))
    const resolved = await resolveEachWithPython(
      plans.map(({ plan }) => ({ overrides: plan.overrides, validate: true })),
      { python },
    )
    for (const [index, { errors, tree }] of resolved.entries()) {
      const { name, plan } = plans[index]!
      expect({ name, errors }).toEqual({ name, errors: [] })
      expect({ name, tree: comparable(tree!) }).toEqual({ name, tree: comparable(plan.tree) })
    }
  })

  it('names every override that it does not take', async () => {
    const { errors, tree } = await resolveWithPython({ python, overrides: ['trainer.nnode=1', 'trainer.nnodes=1', 'data.foo=2'] })
    expect(tree).toBeNull()
    expect(errors).toEqual([
      expect.stringMatching(/^trainer\.nnode=1: Could not override 'trainer\.nnode'/),
      expect.stringMatching(/^data\.foo=2: /),
    ])
  })

  it('says what its dataclasses have against a value', async () => {
    const { overrides } = await planOf(model)
    const wrong = ['actor_rollout_ref.actor.loss_agg_mode=mean', 'actor_rollout_ref.rollout.mode=sync']
    const resolved = await resolveEachWithPython(
      wrong.map((each) => ({ overrides: [...overrides, each], validate: true })),
      { python },
    )
    expect(resolved.map(({ errors }) => errors.join('\n'))).toEqual([
      expect.stringMatching(/Invalid loss_agg_mode: mean/),
      expect.stringMatching(/sync.*removed/),
    ])
  })
})

it('a Python without verl, and one that is none, are told apart', async () => {
  expect((await resolveWithPython({ python: 'python3', env: { PATH: process.env['PATH'] } })).errors.join()).toMatch(
    /install verl into this Python/,
  )
  const broken = join(directory, 'python')
  writeFileSync(broken, '#!/bin/sh\necho no >&2\nexit 3\n', { mode: 0o755 })
  await expect(resolveWithPython({ python: broken })).rejects.toMatchObject({
    code: 'CONFIG_INVALID',
    message: expect.stringContaining('no; check that Python'),
  })
})
