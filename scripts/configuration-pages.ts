import { ArealSettings } from '@aworld-train/trainers/areal'
import { SwiftSettings } from '@aworld-train/trainers/swift'
import { TrlSettings } from '@aworld-train/trainers/trl'
import { VerlSettings } from '@aworld-train/trainers/verl'
import { LocalConfig } from '@aworld-train/training'
import type { z } from 'zod'
import { TinkerSettings } from '../packages/aworld-train/src/policies/tinker-policy.ts'
import { settingTerms, type TrainerColumn } from '../packages/aworld-train/src/setting-terms.ts'
import { ServeConfig, ServeModel } from '../packages/cli/src/serve/serve-config.ts'
import { generatedNote, tableLines } from './markdown.ts'
import { type SettingRow, settingRows, settingSections } from './setting-rows.ts'
import { termWords, worksLines } from './works-with.ts'

const rowLines = (rows: readonly SettingRow[]) =>
  tableLines(
    ['key', 'type', 'default', 'what it means'],
    rows.map(({ key, type, initial, meaning }) => [`\`${key}\``, type, initial, meaning.replaceAll('|', '\\|')]),
  )

function sectionLines(schema: z.ZodObject, edit: (row: SettingRow) => SettingRow | [] = (row) => row): string[] {
  return settingSections(schema).flatMap(({ name, meaning, rows }) => {
    const edited = rows.flatMap(edit)
    if (edited.length === 0) return []
    return [`## ${name === '' ? 'At the top' : `\`${name}\``}`, '', ...(meaning === '' ? [] : [meaning, '']), ...rowLines(edited), '']
  })
}

/** A setting as some trainers have it: where none of them reads it, its row says so. */
function readBy(row: SettingRow, trainers: readonly TrainerColumn[]): SettingRow {
  const terms = new Set(trainers.map((trainer) => settingTerms[row.key as keyof typeof settingTerms]?.[trainer] ?? 'read'))
  return terms.size === 1 && terms.has('note') ? { ...row, meaning: `${row.meaning} **It has no effect here.**` } : row
}

/** The reference of what a training reads, whoever trains. */
function configurationPage(): string {
  return [
    '# Configuration',
    '',
    generatedNote,
    '',
    '`config` of `AgentTrainer` is an object with these keys, or the path of a YAML or JSON file with them. Every key has a default. An unknown key is an error with a suggestion.',
    '',
    '```yaml',
    'model: { path: ./model }',
    'training: { steps: 100, learningRate: 1e-4 }',
    'limits: { maxTurns: 6 }',
    '```',
    '',
    'One configuration serves every trainer. [Trainers](trainers.md#what-each-does-with-a-setting) says which keys one of them refuses or leaves aside. A section with the name of a trainer (`tinker`, `verl`, `trl`, `areal`, `swift`) holds what that trainer alone reads, and stands over the keys around it.',
    '',
    'The trainer in the box reads a configuration of verl too. It translates keys that have a meaning here and names the others once. A key of verl that would change the training is an error.',
    '',
    'Keys that name a column (`training.stratify.key`, `evaluation.kindKey`) look in `extra_info` of a row, in its `data`, and in the row itself. [Give it your tasks](../3.guides/datasets.md) shows the columns.',
    '',
    ...sectionLines(LocalConfig),
    '## `tinker`',
    '',
    'Only the trainer `tinker` reads this section. Its own `training`, `sampling`, `evaluation` and `limits` may stand in it. [Train with Tinker](../3.guides/tinker.md) shows it at work.',
    '',
    ...rowLines(settingRows(TinkerSettings, 'tinker')),
    '',
    '## What works with the trainer in the box',
    '',
    ...worksLines('local'),
    '',
  ].join('\n')
}

const blockWords =
  'The general terms `training` and `sampling` of the [configuration](configuration.md) may stand here too. They become keys of the framework; a key of the framework that you set wins over them.'

function verlPage(): string {
  return [
    '# Our keys in a configuration of verl',
    '',
    generatedNote,
    '',
    "These keys stand at the top of a configuration, beside verl's own sections or the section `verl` that holds them. In the section `verl` one wins over the top, for verl alone. [Train with verl](../3.guides/verl.md) shows them at work.",
    '',
    '```yaml',
    'rows: all                     # our keys',
    'limits: { maxTurns: 8 }',
    'verl:                         # keys of verl',
    '  actor_rollout_ref:',
    '    model: { path: Qwen/Qwen3-4B }',
    '```',
    '',
    `${blockWords} verl also reads \`engine\`.`,
    '',
    ...sectionLines(VerlSettings, (row) => readBy(row, ['verl'])),
  ].join('\n')
}

const frameworks = [
  {
    name: 'trl',
    title: 'TRL',
    settings: TrlSettings,
    keys: "fields of `GRPOConfig`, and of peft's `LoraConfig` under `lora`",
    response: '`max_completion_length`',
  },
  { name: 'areal', title: 'AReaL', settings: ArealSettings, keys: "the keys of AReaL's YAML", response: '`gconfig.max_new_tokens`' },
  {
    name: 'swift',
    title: 'ms-swift',
    settings: SwiftSettings,
    keys: 'arguments of `swift rlhf --rlhf_type grpo`',
    response: '`max_completion_length`',
  },
] as const

/** One page for three frameworks, whose settings are the same but for a few. */
function frameworksPage(): string {
  const names = frameworks.map(({ name }) => name)
  const columns = frameworks.map(({ settings }) => new Map(settingRows(settings).map((row) => [row.key, row])))
  const keys = [...new Set(columns.flatMap((rows) => [...rows.keys()]))]
  const isShared = (key: string) => new Set(columns.map((rows) => JSON.stringify(rows.get(key)))).size === 1
  const ofOne = keys.filter((key) => !isShared(key))
  const terms = Object.entries(settingTerms).flatMap(([name, row]) => {
    const cells = names.map((framework) => termWords[row[framework]])
    return new Set(cells).size === 1 ? [] : [[`\`${name}\``, ...cells]]
  })
  return [
    '# Our keys in a configuration of TRL, AReaL or ms-swift',
    '',
    generatedNote,
    '',
    "These keys stand at the top of a configuration, and the framework's own in the section of its name. There one of ours wins over the top, for that framework alone. [TRL](../3.guides/trl.md), [AReaL](../3.guides/areal.md) and [ms-swift](../3.guides/swift.md) have a guide each, which shows them at work.",
    '',
    '```yaml',
    'rows: last                    # our keys',
    'limits: { maxTurns: 8 }',
    'trl:                          # keys of the framework',
    '  learning_rate: 1e-5',
    '```',
    '',
    blockWords,
    '',
    '## What differs',
    '',
    ...tableLines(
      ['', ...frameworks.map(({ title }) => title)],
      [
        ['keys of the framework', ...frameworks.map(({ keys }) => keys)],
        ['longest response, in tokens', ...frameworks.map(({ response }) => response)],
        ...ofOne.map((key) => [
          `\`${key}\``,
          ...columns.map((rows) => {
            const row = rows.get(key)
            return row ? `${row.type}, default ${row.initial}. ${row.meaning}` : 'no such key'
          }),
        ]),
        ...terms,
      ],
    ),
    '',
    'Every other key means the same with all three.',
    '',
    ...sectionLines(TrlSettings, (row) => (isShared(row.key) ? readBy(row, names) : [])),
  ].join('\n')
}

/** The keys of a kind of model. Where another kind has them all, its keys that this one lacks. */
function modelLines(model: z.ZodObject): string[] {
  const { kind: _, ...shape } = model.shape
  const wider = ServeModel.options.find(
    (other) => other !== model && Object.entries(shape).every(([key, value]) => other.shape[key as 'kind'] === value),
  )
  if (wider === undefined) return rowLines(settingRows(model, 'models.NAME'))
  const lacking = Object.keys(wider.shape).flatMap((key) => (key in model.shape ? [] : [`\`${key}\``]))
  return [`It has the keys of \`${wider.shape.kind.value}\`, but not ${lacking.join(' and ')}.`]
}

/** The reference of the file that `serve --config` reads. */
function servePage(): string {
  return [
    '# Configuration of `serve`',
    '',
    generatedNote,
    '',
    'The file of `aworld-train serve --config FILE` is YAML or JSON. Paths in it are relative to it. An unknown key is an error with a suggestion. [Serve agents that run elsewhere](../3.guides/serving.md) shows how the parts go together.',
    '',
    ...sectionLines(ServeConfig),
    '## Kinds of models',
    '',
    '`models` has an entry for each name that agents ask for. Its `kind` says which keys it has.',
    '',
    ...ServeModel.options.flatMap((model) => [
      `### \`${model.shape.kind.value}\``,
      '',
      model.description ?? '',
      '',
      ...modelLines(model),
      '',
    ]),
  ].join('\n')
}

/** The pages that list keys of a configuration, by their paths. */
export const configurationPages = (): Readonly<Record<string, string>> => ({
  'docs/4.reference/configuration.md': configurationPage(),
  'docs/4.reference/verl-configuration.md': verlPage(),
  'docs/4.reference/trl-areal-swift-configuration.md': frameworksPage(),
  'docs/4.reference/serve-configuration.md': servePage(),
})
