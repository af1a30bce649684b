import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { TrainingTask } from '@aworld-train/core'
import { LocalConfig, OpenLoop, parseLocalConfig, requireTrainable, type SettingName, setAt } from '@aworld-train/training'
import { describe, expect, it, test } from 'vitest'
import { z } from 'zod'
import { tinkerPolicy } from './policies/tinker-policy.ts'
import { trainerSections } from './policies/trainer-sections.ts'
import { pythonTrainers } from './python-trainers.ts'
import { type SettingTerm, settingTerms, type TrainerColumn } from './setting-terms.ts'

const names = Object.keys(settingTerms) as SettingName[]
const defaults = parseLocalConfig({}).config

/** Values for settings that reject the plain ones below. */
const values: Partial<Record<SettingName, unknown>> = {
  policies: { lead: { path: './lead' } },
  models: { critic: { baseUrl: 'http://127.0.0.1:1', model: 'm' } },
  'training.stratify': { key: 'kind', counts: { easy: 16 } },
  'gateway.trainedCalls': 'all',
  'gateway.tls': { cert: 'a.pem', key: 'b.pem' },
}
const plain = [true, false, 2, 64, 100_000, 0.5, 'x', 'http://127.0.0.1:1', ['tensorboard'], ['x'], [0.5, 0.6], { a: 'b' }]

/** The schemas of all settings by their names: the leaves of the configuration. */
function* leavesOf(schema: z.core.$ZodType, path: readonly string[] = []): Generator<readonly [string, z.ZodType]> {
  const inner = innerOf(schema)
  if (inner instanceof z.ZodObject && !isNullable(schema))
    for (const [key, member] of Object.entries(inner.shape)) yield* leavesOf(member, [...path, key])
  else yield [path.join('.'), schema as z.ZodType]
}

const innerOf = (schema: z.core.$ZodType): z.core.$ZodType =>
  'innerType' in schema._zod.def ? innerOf(schema._zod.def.innerType as z.ZodType) : schema
const isNullable = (schema: z.core.$ZodType) => z.safeParse(schema, null).success

const schemas = new Map(leavesOf(LocalConfig))

/** A configuration that sets only this setting, to a value other than its default. */
function writing(name: SettingName): Record<string, unknown> {
  const schema = schemas.get(name)!
  const inner = innerOf(schema)
  const before = JSON.stringify(name.split('.').reduce<unknown>((at, key) => (at as Record<string, unknown>)[key], defaults))
  const candidates = name in values ? [values[name]] : [...(inner instanceof z.ZodEnum ? inner.options : []), ...plain]
  const value = candidates.find((each) => schema.safeParse(each).success && JSON.stringify(each) !== before)
  if (value === undefined) throw new Error(`There is no value for ${name} here; add one to \`values\`.`)
  const tree: Record<string, unknown> = {}
  setAt(tree, name.split('.'), value)
  return tree
}

/** The treatment of a setting by a trainer, derived from its notes and problems. */
function termOf(name: string, notes: readonly string[], problems: readonly string[]): SettingTerm {
  const [section = ''] = name.split('.')
  if (problems.some((problem) => problem.includes(name))) return 'refused'
  const inert = /has no effect with|leaves aside|is that of the engine in the box/
  return notes.some((note) => inert.test(note) && (note.includes(section) || note.includes(name))) ? 'note' : 'read'
}

const columnOf = (trainer: TrainerColumn) => Object.fromEntries(names.map((name) => [name, settingTerms[name][trainer]]))

it('has every setting of the configuration, and no other', () => {
  expect(names.toSorted()).toEqual([...schemas.keys()].toSorted())
})

describe.each(pythonTrainers)('$name', ({ name: trainer, readConfig }) => {
  it('reads, refuses or notes every setting, as the table says', async () => {
    const read = async (configuration: object) => {
      const {
        notes,
        problems,
        source: _,
        ...config
      } = { source: null, ...(await readConfig(configuration, { baseDirectory: '/', environment: {}, sections: trainerSections })) }
      return { notes, problems, config: JSON.stringify(config, (_key, value) => (value instanceof Map ? [...value] : value)) }
    }
    const without = await read({})
    const terms: Record<string, SettingTerm | 'dropped'> = {}
    for (const name of names) {
      const { notes, problems, config } = await read(writing(name))
      const term = termOf(
        name,
        notes.filter((note) => !without.notes.includes(note)),
        problems,
      )
      terms[name] = term === 'read' && config === without.config ? 'dropped' : term
    }
    expect(terms).toEqual(columnOf(trainer as TrainerColumn))
  })

  it.each(['./loss.ts#cispo', () => []])('refuses a loss of one’s own, and names what chooses the framework’s: %s', async (loss) => {
    const { problems } = await readConfig({ training: { loss } }, { baseDirectory: '/', environment: {}, sections: trainerSections })
    const setting =
      { verl: 'actor_rollout_ref.actor.policy_loss.loss_mode', areal: 'actor.importance_sampling_level' }[trainer] ?? 'loss_type'
    expect(problems).toEqual([expect.stringMatching(/^training\.loss is ("\.\/loss\.ts#cispo"|a function), /)])
    expect(problems[0]).toContain(`in Python, and ${setting} chooses it.`)
  })

  it('refuses several policies with one problem, which names the way to train them', async () => {
    const configuration = { policies: { lead: { path: './lead' }, reader: { path: './reader' } } }
    const { problems, failed } = await readConfig(configuration, { baseDirectory: '/', environment: {}, sections: trainerSections })
    expect(problems).toEqual([expect.stringMatching(/^policies names "lead", "reader", .*in models, as a frozen model behind .*serve/)])
    expect(problems[0]).toContain('docs/3.guides/training-swarms.md')
    // No model is looked for, and no name of an agent is compared with it.
    expect(failed).toContain('model')
  })

  it('notes settings of the engine in the box in its own section too', async () => {
    const { notes } = await readConfig(
      { [trainer]: { engine: { threads: 2 } } },
      { baseDirectory: '/', environment: {}, sections: trainerSections },
    )
    expect(notes).toContain(`${trainer} leaves aside what is for other trainers: engine.`)
  })
})

const tasks = [{ extraInfo: { kind: 'easy' }, data: {} }] as unknown as TrainingTask[]
const ownLoops: Readonly<Record<string, (config: LocalConfig, section: object) => unknown>> = {
  local: () => {},
  tinker: (config, section) => tinkerPolicy.choose(config, { ...section }, 'model'),
  own: (config) => new OpenLoop({ config, store: { steps: () => [], getState: () => null, completions: () => [] } } as never),
}

test.each(Object.keys(ownLoops) as ('local' | 'tinker' | 'own')[])('our own loops refuse and note what the table says: %s', (trainer) => {
  const options = { others: trainerSections, ...(trainer === 'tinker' && { extension: tinkerPolicy.extension }) }
  const terms = names.map((name) => {
    const { config, extension, notes } = parseLocalConfig(writing(name), options)
    const problems = [() => requireTrainable({ config, tasks }), () => ownLoops[trainer]!(config, extension)].flatMap((check) => {
      try {
        check()
        return []
      } catch (error) {
        return (error as Error).message
      }
    })
    return [name, termOf(name, notes, problems)]
  })
  const column = Object.entries(columnOf(trainer)).map(([name, term]) => [name, term === 'handed over' ? 'read' : term])
  expect(Object.fromEntries(terms)).toEqual(Object.fromEntries(column))
})

test('the sources of the trainer in the box name every setting that it reads', () => {
  const packages = fileURLToPath(new URL('../../', import.meta.url))
  const sources = ['agent-side', 'directory', 'events', 'executor', 'inputs', 'loop', 'preflight', 'reward']
    .map((room) => `training/src/${room}`)
    .concat('rollout/src', 'gateway/src', 'aworld-train/src')
    .flatMap((folder) =>
      readdirSync(join(packages, folder), { recursive: true, encoding: 'utf8' })
        .filter((file) => file.endsWith('.ts') && !/\.test\.|setting-terms|testing/.test(file))
        .map((file) => readFileSync(join(packages, folder, file), 'utf8')),
    )
  const words = new Set(sources.flatMap((source) => source.match(/\w+/g) ?? []))
  expect(names.filter((name) => settingTerms[name].local === 'read' && !words.has(name.split('.').at(-1)!))).toEqual([])
})
