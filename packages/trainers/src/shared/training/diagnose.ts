import { resolve } from 'node:path'
import { errorMessage, type MachineCheck, type TrainerConfig, type TrainerPlan } from '@aworld-train/core'
import type { TrainerSettings } from '@aworld-train/training'
import { type FoundPython, findPython } from '../environment/find-python.ts'
import { bridgeDirectory } from '../python-package.ts'
import { contextLengthOf } from './plan-start.ts'
import { toCheck } from './to-check.ts'
import type { PythonTrainingPlan, Trainer } from './training-plan.ts'

export interface DiagnoseOptions {
  readonly env: NodeJS.ProcessEnv
  readonly projectDirectory: string
  /** The configuration to train with. Its paths are relative to `projectDirectory`. */
  readonly config?: string | object | undefined
  /** Keys at the top of a configuration that belong to one trainer each. */
  readonly sections?: readonly string[] | undefined
  /** A plan for that configuration. Its Python is not looked for again, and its configuration is not read again. */
  readonly planned?: Pick<PythonTrainingPlan, 'python' | 'config'> | undefined
  readonly signal?: AbortSignal | undefined
}

/** Checks the Python of a framework, a configuration and the machine; collects every problem and starts no training. */
export async function* diagnoseTrainer(trainer: Trainer, options: DiagnoseOptions): AsyncGenerator<MachineCheck> {
  const { env, projectDirectory, config, planned, signal } = options
  const found =
    planned?.python ??
    (await findPython(trainer.python, { env, projectDirectory, signal }).catch((error: unknown) => toProblem('python', error, signal)))
  const python = 'path' in found ? found.path : null
  if ('level' in found) yield found
  else yield* pythonChecks(trainer, found)
  let plan: TrainerPlan | null = null
  if (config !== undefined) {
    const diagnosis = await diagnoseConfig(trainer, { ...options, config, python }).catch((error: unknown) => ({
      checks: [toProblem('config', error, signal)],
      plan: null,
    }))
    yield* diagnosis.checks
    plan = diagnosis.plan
  }
  yield* trainer.checks({ plan, python, env, directory: projectDirectory, signal })
}

function pythonChecks(trainer: Trainer, { path, source, report, passedOver }: FoundPython): MachineCheck[] {
  const versions = trainer.python.shown.flatMap((name) => (report.packages[name] ? [`${name} ${report.packages[name]}`] : []))
  const of = (which: (about: string) => boolean) => report.problems.filter(({ about }) => which(about))
  const earlier = passedOver.map((each) => `passed over: ${each.path} (${each.source}): ${each.reason}`)
  return [
    toCheck(
      'python',
      [`${report.version}, ${path} (${source})`, ...earlier].join('\n'),
      of((about) => about === 'python'),
    ),
    toCheck(
      'packages',
      versions.join(', '),
      of((about) => about !== 'python'),
    ),
  ]
}

export interface ConfigDiagnosis {
  readonly checks: readonly MachineCheck[]
  /** `null` if the configuration cannot be read. */
  readonly plan: TrainerPlan | null
}

/** Checks a configuration. Finds its problems, its traps, and the errors of the installed framework. */
export async function diagnoseConfig(
  trainer: Trainer,
  { config: source, projectDirectory, python, env, sections, planned, signal }: DiagnoseOptions & { readonly python: string | null },
): Promise<ConfigDiagnosis> {
  const config =
    planned?.config ??
    (await trainer.readConfig(typeof source === 'string' ? resolve(projectDirectory, source) : source, {
      baseDirectory: projectDirectory,
      environment: env,
      sections,
      findPython: async () => python,
      signal,
    }))
  const note = (message: string): MachineCheck => ({ name: 'note', level: 'ok', message })
  const problem = (message: string): MachineCheck => ({ name: 'config', level: 'problem', message })
  const warning = (message: string): MachineCheck => ({ name: 'config', level: 'warning', message })
  if (config.problems.length > 0) return { checks: config.problems.map(problem), plan: null }
  if (config.version === null) {
    const left = `there is no ${trainer.name} above to read it: only AWorld Train's own keys were checked`
    return { checks: [warning(left), ...config.notes.map(note)], plan: null }
  }
  const plan = await trainer.plan(config, standIn(config, projectDirectory), { validate: true, signal })
  const checks = [
    ...[...new Set(plan.problems)].map(problem),
    ...plan.warnings.map(warning),
    ...[...new Set([...config.notes, ...plan.notes])].map(note),
  ]
  if (plan.problems.length === 0) {
    const message = `${trainer.name} ${config.version} takes it`
    checks.push({ name: 'config', level: 'ok', message })
  }
  return { checks, plan }
}

/** More rows than any run trains. The actual number is checked with the dataset. */
const enoughRows = 1_000_000_000

/** Placeholders for the parts of a run that are not in a configuration. */
function standIn({ settings, names, directory }: TrainerConfig<TrainerSettings>, path: string) {
  const data = (files: readonly string[], file: string) => (files.length > 0 ? null : { path: resolve(path, file), rows: enoughRows })
  return {
    path,
    name: 'doctor',
    agent: { name: 'agent', module: './agent.ts#agent', directory: path, source: null },
    train: data(names.trainFiles, 'train_data.parquet'),
    test: data(names.testFiles, 'test_data.parquet'),
    reward: settings.reward.native ? null : { path: resolve(path, 'reward.ts'), name: 'reward' },
    bridgeDirectory,
    contextLength: names.model === null ? null : contextLengthOf(resolve(directory, names.model)),
  }
}

export function toProblem(name: string, error: unknown, signal: AbortSignal | undefined): MachineCheck {
  signal?.throwIfAborted()
  return { name, level: 'problem', message: errorMessage(error) }
}
