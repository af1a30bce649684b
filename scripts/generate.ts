// Writes what is made from the sources: JSON Schemas, the error reference, the public names. `--check` only compares.
import { spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import {
  AnswerKey,
  CoordinatorMessage,
  DriverMessage,
  EnvironmentStatus,
  Episode,
  errorCatalogue,
  InferenceReport,
  LeaseAnswer,
  LeaseOpen,
  Message,
  RolloutRequest,
  RolloutState,
  RunEvent,
  RunManifest,
  RunReport,
  Sampling,
  ServiceMessage,
  SessionOpened,
  SessionOpening,
  SessionRecord,
  TokenLedger,
  ToolDefinition,
  TrainingSample,
  TrainingTask,
  Trajectory,
  Turn,
  WeightPublication,
  WeightReport,
  WorkerMessage,
} from '@aworld-train/protocol'
import { settingsTemplate } from '@aworld-train/tool-servers'
import { ArealSettings } from '@aworld-train/trainer-areal'
import { SwiftSettings } from '@aworld-train/trainer-swift'
import { TrlSettings } from '@aworld-train/trainer-trl'
import { VerlLayout, VerlSettings } from '@aworld-train/trainer-verl'
import { LocalConfig } from '@aworld-train/training'
import { z } from 'zod'
import { commands } from '../packages/cli/src/commands/index.ts'
import { toOptions } from '../packages/cli/src/define-command.ts'
import { exitCodesText } from '../packages/cli/src/exit-codes.ts'
import { parityPage } from './parity-page.ts'
import { servePage } from './serve-page.ts'
import { trainersPage } from './trainers-page.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const checkOnly = process.argv.includes('--check')

const files = new Map<string, string>()

const schemas = {
  Task: TrainingTask,
  AnswerKey,
  Turn,
  Trajectory,
  Episode,
  TrainingSample,
  TokenLedger,
  RolloutRequest,
  RolloutState,
  SessionOpening,
  SessionOpened,
  SessionRecord,
  WeightPublication,
  WeightReport,
  LeaseOpen,
  LeaseAnswer,
  EnvironmentStatus,
  RunEvent,
  RunReport,
  InferenceReport,
  RunManifest,
  Message,
  ToolDefinition,
  Sampling,
  DriverMessage,
  ServiceMessage,
  WorkerMessage,
  CoordinatorMessage,
}
for (const [name, schema] of Object.entries(schemas)) {
  const json = { title: name, ...z.toJSONSchema(schema, { io: 'input' }) }
  files.set(`schemas/${kebab(name)}.json`, `${JSON.stringify(json, null, 2)}\n`)
}

files.set('docs/4.reference/errors.md', errorPage())
files.set('docs/4.reference/cli.md', await commandPage())
files.set('docs/4.reference/configuration.md', configurationPage())
files.set(
  'docs/4.reference/verl-configuration.md',
  trainerPage({
    name: 'verl',
    source: 'packages/trainer-verl/src/config/verl-settings.ts',
    words:
      "These keys stand in the block `aworldTrain` of a configuration for verl, or beside verl's own sections. The [general terms](configuration.md) `training`, `sampling` and `engine` may stand there too: they become keys of verl, which win where both are set. `layout` is null unless one of its keys is set. [Train with verl](../3.guides/verl.md) shows them at work.",
    rows: [
      ...settingRows(VerlSettings, 'aworldTrain').filter((row) => !row.includes('`aworldTrain.layout`')),
      ...settingRows(VerlLayout, 'aworldTrain.layout'),
    ],
  }),
)
files.set(
  'docs/4.reference/trl-configuration.md',
  trainerPage({
    name: 'TRL',
    source: 'packages/trainer-trl/src/config/trl-settings.ts',
    words:
      'These keys stand in the block `aworldTrain` of a configuration for TRL, or at its top beside the fields of `GRPOConfig`. The [general terms](configuration.md) `training` and `sampling` may stand there too: they become fields of TRL, which win where both are set. [Train with TRL](../3.guides/trl.md) shows them at work.',
    rows: settingRows(TrlSettings, 'aworldTrain'),
  }),
)
files.set(
  'docs/4.reference/areal-configuration.md',
  trainerPage({
    name: 'AReaL',
    source: 'packages/trainer-areal/src/config/areal-settings.ts',
    words:
      "These keys stand in the block `aworldTrain` of a configuration for AReaL, or at its top beside AReaL's own. The [general terms](configuration.md) `training` and `sampling` may stand there too: they become keys of AReaL, which win where both are set. [Train with AReaL](../3.guides/areal.md) shows them at work.",
    rows: settingRows(ArealSettings, 'aworldTrain'),
  }),
)
files.set(
  'docs/4.reference/swift-configuration.md',
  trainerPage({
    name: 'ms-swift',
    source: 'packages/trainer-swift/src/config/swift-settings.ts',
    words:
      'These keys stand in the block `aworldTrain` of a configuration for ms-swift, or at its top beside the arguments of `swift rlhf`. The [general terms](configuration.md) `training` and `sampling` may stand there too: they become arguments of ms-swift, which win where both are set. [Train with ms-swift](../3.guides/swift.md) shows them at work.',
    rows: settingRows(SwiftSettings, 'aworldTrain'),
  }),
)
files.set('docs/4.reference/serve-configuration.md', servePage())
files.set('docs/4.reference/trainers.md', trainersPage())
files.set('docs/3.guides/coming-from-aworld.md', parityPage())

function kebab(name: string): string {
  return name.replace(/(?<=[a-z])[A-Z]/g, (letter) => `-${letter}`).toLowerCase()
}

function errorPage(): string {
  const rows = Object.entries(errorCatalogue).map(
    ([code, { boundary, retryable, remedy }]) => `| \`${code}\` | ${boundary} | ${retryable ? 'yes' : 'no'} | ${remedy} |`,
  )
  return [
    '# Errors',
    '',
    'Generated from `packages/protocol/src/errors.ts` by `npm run generate`.',
    '',
    'Every error our packages raise is a `TrainError` with one of these codes. Its message says what happened and to what; the last column says what to do.',
    '',
    '| code | boundary | retryable | what to do |',
    '|---|---|---|---|',
    ...rows,
    '',
  ].join('\n')
}

async function commandPage(): Promise<string> {
  const lines = [
    '# Command line',
    '',
    'Generated from `packages/cli/src/commands` by `npm run generate`.',
    '',
    'Type `npx aworld-train train …`, in a project of yours or in a clone of this repository.',
    '',
    `${exitCodesText} After 130 and 141 \`train\` resumes; at a terminal it prints the command.`,
  ]
  for (const { name, description, load } of commands) {
    const definition = await load()
    const args = definition.arguments.map((each) => (each.required ? `<${each.name}>` : `[${each.name}]`)).join(' ')
    lines.push(
      '',
      `## aworld-train ${name}`,
      '',
      `${description[0]?.toUpperCase()}${description.slice(1)}.`,
      '',
      '```',
      `aworld-train ${name} ${args} [options]`.replaceAll('  ', ' '),
      '```',
      '',
    )
    const rows = [
      ...definition.arguments.map((each) => [`\`${each.name}\``, each.description]),
      ...toOptions(definition.options).map((option) => [`\`${option.flags}\``, option.description]),
    ]
    if (rows.length > 0) lines.push('| | |', '|---|---|', ...rows.map(([flag, text]) => `| ${flag} | ${text?.replaceAll('|', '\\|')} |`))
  }
  return `${lines.join('\n')}\n`
}

interface SchemaNode {
  readonly type?: string
  readonly enum?: readonly unknown[]
  readonly anyOf?: readonly SchemaNode[]
  readonly default?: unknown
  readonly properties?: Readonly<Record<string, SchemaNode>>
  readonly items?: SchemaNode
}

/** A row for each setting of a schema: path, type, default. */
function settingRows(settings: z.ZodType, prefix = ''): string[] {
  const schema = z.toJSONSchema(settings, { io: 'input', unrepresentable: 'any' }) as SchemaNode
  const defaults = settings.parse({}) as Record<string, unknown>
  const rows: string[] = []
  const walk = (node: SchemaNode, value: unknown, path: string) => {
    if (node.properties && value !== null && typeof value === 'object') {
      for (const [name, child] of Object.entries(node.properties))
        walk(child, (value as Record<string, unknown>)[name], path ? `${path}.${name}` : name)
    } else rows.push(`| \`${path}\` | ${typeOf(node)} | \`${JSON.stringify(value)}\` |`)
  }
  walk(schema, defaults, prefix)
  return rows
}

interface TrainerPage {
  readonly name: string
  /** File of its settings. */
  readonly source: string
  /** What whoever reads the table should know before. */
  readonly words: string
  readonly rows: readonly string[]
}

function trainerPage({ name, source, words, rows }: TrainerPage): string {
  return [
    `# \`aworldTrain\`: our side of a training with ${name}`,
    '',
    `Generated from \`${source}\` and \`packages/training/src/config/driven-settings.ts\` by \`npm run generate\`; what each key means stands there.`,
    '',
    words,
    '',
    '| key | type | default |',
    '|---|---|---|',
    ...rows,
    '',
  ].join('\n')
}

function configurationPage(): string {
  const rows = settingRows(LocalConfig)
  return [
    '# Configuration of the trainer in the box',
    '',
    'Generated from `packages/training/src/config/local-config.ts` by `npm run generate`; what each key means stands there.',
    '',
    '`config` of `AgentTrainer` is a YAML or JSON file with these keys, or an object. An unknown key is an error with a suggestion. A verl configuration is read too: keys with a meaning here are translated, the others are reported once, and one that would change training is an error.',
    '',
    '`training.stratify.key` and `evaluation.kindKey` name a column of the rows, in `extra_info`, in `data` or beside them; which columns the agent sees stands in [Give it your tasks](../3.guides/datasets.md). With `training.samplesPerPrompt: 1` the advantage must be `none`: every other one compares the samples of a prompt.',
    '',
    '| key | type | default |',
    '|---|---|---|',
    ...rows,
    '',
  ].join('\n')
}

function typeOf(node: SchemaNode): string {
  if (node.enum) return node.enum.map((value) => `\`${String(value)}\``).join(', ')
  if (node.anyOf) return node.anyOf.map(typeOf).join(' or ')
  if (node.type === 'array') return `list of ${node.items ? typeOf(node.items) : 'values'}`
  return node.type ?? (node.properties ? 'object' : 'any')
}

files.set('env/.env_template', settingsTemplate())

let stale = 0
for (const [path, text] of files) {
  const target = join(root, path)
  let present = ''
  try {
    present = readFileSync(target, 'utf8')
  } catch {
    // Absent counts as stale.
  }
  if (present === text) continue
  stale += 1
  if (checkOnly) console.error(`${path} is stale; run "npm run generate".`)
  else {
    mkdirSync(dirname(target), { recursive: true })
    writeFileSync(target, text)
    console.log(`wrote ${path}`)
  }
}
if (!checkOnly) {
  // The test of the public names knows them; here it writes what it would compare.
  const { status } = spawnSync(
    process.execPath,
    ['node_modules/vitest/vitest.mjs', 'run', '--update', '--reporter=dot', 'test/exports.test.ts'],
    { cwd: root, stdio: 'inherit' },
  )
  if (status !== 0) process.exit(1)
}
process.exit(checkOnly && stale > 0 ? 1 : 0)
