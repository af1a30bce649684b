// Writes what is made from the sources: JSON Schemas, the error reference, the public names. `--check` only compares.
import { spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import {
  AnswerKey,
  CoordinatorMessage,
  EnvironmentStatus,
  Episode,
  EvaluationReport,
  EvaluationRow,
  errorCatalogue,
  LeaseAnswer,
  LeaseCollect,
  LeaseCopy,
  LeaseCopyAnswer,
  LeaseFiles,
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
  TrainerClientMessage,
  TrainingSample,
  TrainingTask,
  Trajectory,
  Turn,
  WeightPublication,
  WeightReport,
  WorkerMessage,
} from '@aworld-train/core'
import { settingsTemplate } from '@aworld-train/tools'
import { z } from 'zod'
import { commands } from '../packages/cli/src/commands/index.ts'
import { toOptions } from '../packages/cli/src/define-command.ts'
import { exitCodesText } from '../packages/cli/src/exit-codes.ts'
import { differencesTable } from '../packages/tools/src/sandbox/simulated/differences.ts'
import { browserTools } from './browser-tools.ts'
import { configurationPages } from './configuration-pages.ts'
import { generatedNote } from './markdown.ts'
import { parityPage } from './parity-page.ts'
import { trainersPage } from './trainers-page.ts'
import { guides, type ListedTrainer, withWorks } from './works-with.ts'

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
  LeaseCollect,
  LeaseCopy,
  LeaseCopyAnswer,
  LeaseFiles,
  LeaseOpen,
  LeaseAnswer,
  EnvironmentStatus,
  RunEvent,
  RunReport,
  EvaluationReport,
  EvaluationRow,
  RunManifest,
  Message,
  ToolDefinition,
  Sampling,
  TrainerClientMessage,
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
for (const [path, text] of Object.entries(configurationPages())) files.set(path, text)
files.set('docs/4.reference/trainers.md', trainersPage())
files.set('docs/3.guides/coming-from-aworld.md', parityPage())
files.set('docs/4.reference/simulated-commands.md', simulatedPage())
for (const [trainer, path] of Object.entries(guides))
  files.set(path, withWorks(readFileSync(join(root, path), 'utf8'), trainer as ListedTrainer))

function simulatedPage(): string {
  return [
    '# Commands of the simulated tier',
    '',
    generatedNote,
    '',
    'Without bubblewrap, and on macOS and Windows, the commands of an agent run in a [simulated bash](../3.guides/tool-environment.md#where-commands-run). Everyday commands answer as on Linux, except for these; a test compares them. `get_terminal_capabilities` tells the model the same.',
    '',
    differencesTable(),
    '',
  ].join('\n')
}

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
    generatedNote,
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
    generatedNote,
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

files.set('env/.env_template', settingsTemplate())
files.set('packages/tools/src/servers/browser/package-tools.json', await browserTools())

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
