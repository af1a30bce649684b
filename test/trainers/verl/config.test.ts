// @module-tag quick
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: OmegaConf's syntax.
// verl's configuration as the installed verl composes, resolves and validates it; nothing is trained.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { bridgeDirectory } from '../../../packages/trainers/src/shared/index.ts'
import { formatOverride } from '../../../packages/trainers/src/verl/config/hydra-override.ts'
import { readWithVerl } from '../../../packages/trainers/src/verl/config/installed-verl.ts'
import { planVerl } from '../../../packages/trainers/src/verl/config/plan-verl.ts'
import { readVerlConfig } from '../../../packages/trainers/src/verl/config/read-verl-config.ts'
import { resolveKey } from '../../../packages/trainers/src/verl/config/resolve-key.ts'
import type { VerlConfigSource } from '../../../packages/trainers/src/verl/config/verl-config.ts'
import { isGroup } from '../../../packages/trainers/src/verl/config/verl-keys.ts'
import { verlRun } from '../../../packages/trainers/src/verl/config/verl-run.test-support.ts'
import { publishedOverrides } from '../../../packages/trainers/src/verl/testing/published-overrides.ts'
import defaults from '../../../packages/trainers/src/verl/testing/verl-defaults.json' with { type: 'json' }
import { leaves, valueAt } from '../../../packages/training/src/index.ts'
import { verlEnvironment } from '../../support/python-environment.ts'

const model = { 'actor_rollout_ref.model.path': 'Qwen/Qwen3-4B' }

let python: string
let directory: string
beforeAll(async () => {
  python = await verlEnvironment()
  directory = mkdtempSync(join(tmpdir(), 'aworld-train-verl-schema-'))
})
afterAll(() => rmSync(directory, { recursive: true, force: true }))

const read = async (source: VerlConfigSource, environment: Record<string, string> = {}) =>
  await readVerlConfig(source, {
    verl: async (_, written) => await readWithVerl(written, { python, env: { PATH: process.env['PATH'], ...environment } }),
    baseDirectory: directory,
  })
/** What the installed verl says of a configuration. */
const planOf = async (source: VerlConfigSource, validate = false) => await planVerl(await read(source), verlRun(), { validate })

/** Overrides that choose files of Hydra, and the others. */
const cut = (overrides: readonly string[]) => ({
  groups: overrides.filter((each) => isGroup(each.split('=')[0] as string)),
  overrides: overrides.filter((each) => !isGroup(each.split('=')[0] as string)),
})

/** A program of verl's Python that answers each line with a line. */
function runPython(args: readonly string[], requests: readonly unknown[]): unknown[] {
  const stdout = execFileSync(python, args, {
    cwd: bridgeDirectory,
    input: requests.map((request) => `${JSON.stringify(request)}\n`).join(''),
    encoding: 'utf8',
    maxBuffer: 1 << 26,
  })
  return stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
}

const sources: readonly (readonly [string, () => VerlConfigSource])[] = [
  ['the overrides of the published launch script', () => publishedOverrides()],
  ['a model alone', () => model],
  [
    'our general terms',
    () => ({
      ...model,
      training: { steps: 4, samplesPerPrompt: 4, promptsPerStep: 8, finalLearningRateFraction: 0.1, klCoefficient: 0.01, epsilon: 1e-7 },
      evaluation: { temperature: 0.5 },
    }),
  ],
  ['a hybrid layout', () => ({ ...model, layout: { schedule: 'colocate_async', trainer: { gpus: 8 }, rollout: { tensorParallel: 2 } } })],
  [
    'the layout of two nodes',
    () => ({
      ...model,
      layout: { mode: 'standalone', trainer: { gpus: 8 }, rollout: { gpus: 8, tensorParallel: 2 }, staleness: 1 },
    }),
  ],
  ['a colocated layout', () => ({ ...model, layout: { mode: 'colocated', trainer: { gpus: 4 }, rollout: { gpus: 4 } } })],
  ['a run on CPU', () => ({ ...model, smoke: true })],
  ['a native reward', () => ({ ...model, 'custom_reward_function.path': '/r.py', reward: { native: true } })],
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
  it('has the values that tests without it rely on', async () => {
    const { verl } = await read({})
    const differing = [...leaves(defaults)].filter(
      ([path, value]) => JSON.stringify(valueAt(verl!.resolved, path)) !== JSON.stringify(value),
    )
    expect(differing).toEqual([])
  })

  it('takes what we render, and reads the values that we mean', async () => {
    const plans = await Promise.all(sources.map(async ([name, source]) => ({ name, plan: await planOf(source()) })))
    const requests = plans.map(({ plan }) => ({ ...cut(plan.overrides), validate: true }))
    const answers = runPython(['-m', 'aworld_train_bridge.verl.resolve_config'], requests) as { errors: unknown[] }[]
    for (const [index, { name, plan }] of plans.entries()) {
      expect({ name, problems: plan.problems, errors: answers[index]?.errors }).toEqual({ name, problems: [], errors: [] })
      for (const { path, value } of plan.keys.values())
        if (!JSON.stringify(value).includes('${')) expect([path, valueAt(plan.tree, path)]).toEqual([path, value])
    }
  })

  it('lays keys over what Hydra composed once, as Hydra itself composes them', async () => {
    const plans = await Promise.all(sources.map(async ([, source]) => await planOf(source())))
    const compare = [
      'import json, sys',
      'from omegaconf import OmegaConf',
      'from aworld_train_bridge.verl.resolve_config import PLACEHOLDERS, compose, compose_over, os',
      'for name in PLACEHOLDERS: os.environ.setdefault(name, "")',
      'for line in sys.stdin:',
      '    at = json.loads(line)',
      '    both = compose(at["groups"] + at["overrides"]), compose_over(at["groups"], at["overrides"])',
      '    print(json.dumps([OmegaConf.to_container(each, resolve=True) for each in both], default=str))',
    ].join('\n')
    const pairs = runPython(
      ['-c', compare],
      plans.map(({ overrides }) => cut(overrides)),
    ) as [unknown, unknown][]
    expect(pairs).toHaveLength(plans.length)
    for (const [byHydra, laid] of pairs) expect(laid).toEqual(byHydra)
  })

  it('says all that is wrong with keys: what Hydra cannot read, a letter that is wrong, a reference to nothing', async () => {
    const overrides = ['trainer.nnode=1', 'data.train_batch_size=1,2', 'trainer.logger=[a', 'trainer.project_name=${nothing.here}']
    const { problems } = await read(overrides)
    expect(problems).toEqual([
      expect.stringMatching(/^data\.train_batch_size: several values with commas are a sweep/),
      expect.stringMatching(/^trainer\.logger: /),
      expect.stringMatching(/^trainer\.project_name: .*nothing/),
      expect.stringMatching(/^trainer\.nnode \(an override\) is no key of verl 0\.9\.1\. Did you mean "trainer\.nnodes"\?/),
    ])
  })

  it('takes keys that none of its files names, and says so', async () => {
    const source = { ...model, actor_rollout_ref: { actor: { optim: { of_tomorrow: 1 } }, rollout: { engine_kwargs: { vllm: { x: 1 } } } } }
    const { problems, notes } = await read(source)
    expect(problems).toEqual([])
    expect(notes).toEqual([
      expect.stringMatching(/^actor_rollout_ref\.actor\.optim\.of_tomorrow .* stands in no file of verl 0\.9\.1; it is added/),
    ])
    // verl's own dataclass has the last word.
    expect((await planOf(source, true)).problems).toEqual([
      expect.stringMatching(/^actor_rollout_ref\.actor\.optim\.of_tomorrow: .*unexpected keyword argument/),
    ])
  })

  it('says what its dataclasses have against a value', async () => {
    const wrong = ['actor_rollout_ref.actor.loss_agg_mode', 'actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu']
    const [mode, size] = [
      await planOf({ ...model, [wrong[0]!]: 'mean' }, true),
      await planOf({ ...model, [wrong[1]!]: 3, [wrong[1]!.replace('_per_gpu', '')]: 3 }, true),
    ]
    expect(mode.problems.join()).toMatch(/Invalid loss_agg_mode: mean/)
    expect(size.problems.join()).toMatch(/ppo_micro_batch_size/)
  })

  it.each([
    ['./model', './model'],
    ['${oc.env:MODEL_PATH,Qwen/Qwen3-4B}', 'Qwen/Qwen3-4B'],
    ['${oc.env:OTHER_PATH,none}/b', '/a/b'],
    ['/models/${trainer.experiment_name}', '/models/first'],
  ])('replaces the references of %s', async (written, resolved) => {
    const source = { actor_rollout_ref: { model: { path: written } }, trainer: { experiment_name: 'first' } }
    const config = await read(source, { OTHER_PATH: '/a' })
    expect(resolveKey(config, 'actor_rollout_ref.model.path')).toBe(resolved)
    expect(resolveKey(config, 'data.train_batch_size')).toBeUndefined()
  })

  it('reads what is formatted as the same value', async () => {
    const value = fc.letrec((tie) => ({
      value: fc.oneof(
        { depthSize: 'small' },
        fc.string(),
        fc.constantFrom("'", '\\', "\\'", 'null', '1e-6', 'True', '', 'a,b', '/p/q.parquet', 'x:y', ' pad '),
        fc.integer(),
        fc.double({ noNaN: true, noDefaultInfinity: true }).map((each) => (Object.is(each, -0) ? 0 : each)),
        fc.boolean(),
        fc.constant(null),
        fc.array(tie('value'), { maxLength: 3 }),
        fc.dictionary(fc.stringMatching(/^[a-z_]{1,6}$/), tie('value'), { maxKeys: 3, noNullPrototype: true }),
      ),
    })).value
    const values = fc.sample(value, 200).filter((each) => !JSON.stringify(each).includes('${'))
    const texts = values.map((each, index) => formatOverride(`a.b${index}`, each, '++'))
    const written = { keys: {}, texts, groups: [] }
    const { parsed, errors } = await readWithVerl(written, { python })
    expect(errors).toEqual([])
    expect(parsed).toEqual(values)
  })

  it('reads overrides as Hydra does', async () => {
    const { keys, problems } = await read([
      "trainer.project_name='it\\'s'",
      '+data.apply_chat_template_kwargs={a:[1,b],c:1e-3}',
      'trainer.nnodes=2',
    ])
    expect(problems).toEqual([])
    expect(Object.fromEntries([...keys].map(([path, { value }]) => [path, value]))).toEqual({
      'trainer.project_name': "it's",
      'data.apply_chat_template_kwargs.a': [1, 'b'],
      'data.apply_chat_template_kwargs.c': 1e-3,
      'trainer.nnodes': 2,
    })
  })
})

it('a Python without verl, and one that is none, are told apart', async () => {
  const written = { keys: {}, texts: [], groups: [] }
  await expect(readWithVerl(written, { python: 'python3', env: { PATH: process.env['PATH'] } })).rejects.toThrow(
    /install verl into this Python/,
  )
  const broken = join(directory, 'python')
  writeFileSync(broken, '#!/bin/sh\necho no >&2\nexit 3\n', { mode: 0o755 })
  await expect(readWithVerl(written, { python: broken })).rejects.toMatchObject({
    code: 'CONFIG_INVALID',
    message: expect.stringContaining('no; check that Python'),
  })
})
