import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { type Environment, type PythonTrainer, TrainError, type TrainerConfig, type TrainerPlan, type Verifier } from '@aworld-train/core'
import {
  checkAgentSide,
  checkDatasets,
  checkRows,
  collectProblems,
  createNamedReward,
  type DatasetSource,
  findReward,
  findStartingModel,
  type Launchers,
  type LoadedAgent,
  type NamedReward,
  policyName,
  type RewardSource,
  type RunOptions,
  refuseGroupReward,
  requireReward,
  rowsWarning,
  type TrainerSettings,
  trainingName,
  tryReward,
} from '@aworld-train/training'
import { type FoundPython, findPython } from '../environment/find-python.ts'
import { announce } from './announce.ts'
import { describeAgent, toPlanInputs } from './plan-start.ts'
import { checkModelPrompts, checkModelTemplate } from './starting-model.ts'
import type { PythonTrainingPlan, Trainer } from './training-plan.ts'

type Config = TrainerConfig<TrainerSettings>

/** The modules of a training as the user gave them. */
export interface TrainingInputs {
  readonly options: RunOptions
  /** Absent if the check of the agent failed. */
  readonly agent: LoadedAgent | undefined
  readonly train: DatasetSource | undefined
  readonly test: DatasetSource | undefined
  readonly reward: RewardSource | undefined
  /** Folder that relative paths of options are resolved from. */
  readonly baseDirectory: string
  readonly runPath: string
  /** Keys at the top of a configuration that belong to one trainer each. */
  readonly sections: readonly string[]
  /** Trainers that train every row of a rollout. */
  readonly takersOfAllRows: readonly string[]
  /** What starts workers for agents that run in other processes. */
  readonly launchers: Launchers
  /** An environment for an agent of a folder. */
  readonly createEnvironment: (options: { readonly baseDirectory: string; readonly collect: readonly string[] }) => Environment
  /** Opens the place where rewards check files. */
  readonly openVerifier: () => Promise<Verifier>
}

export interface CheckedTraining {
  readonly config: Config
  /** Absent without an agent or a Python; then nothing can run. */
  readonly plan: PythonTrainingPlan | undefined
  /** The reason for a missing plan if nothing else is wrong: no Python with the framework was found. */
  readonly missing: TrainError | null
}

/** Loads a reward once; one in Python is loaded in the framework's interpreter. Throws the error of the loading. */
export async function checkTrainerReward(trainer: Trainer, reward: RewardSource | undefined, baseDirectory: string): Promise<void> {
  if (reward === undefined) return
  // The check of the configuration reports a missing interpreter.
  const isPython = typeof reward === 'string' && /\.py(?:#|$)/.test(reward)
  const found = isPython ? await findTrainerPython(trainer, null, baseDirectory).catch(() => null) : null
  await tryReward(reward, baseDirectory, found?.path)
}

/**
 * Reads the configuration, then what it names: datasets, reward, model, Python; then asks what the framework would be started with.
 * Throws everything that stands against the training at once.
 */
export async function checkPythonTraining(trainer: Trainer, source: unknown, inputs: TrainingInputs): Promise<CheckedTraining> {
  const { options, agent } = inputs
  const problems = collectProblems()
  const { attempt } = problems
  announce(options.onEvent, `check ${trainer.name}: its Python, and the configuration`)
  const { config, python, missing } = await readConfig(trainer, source, inputs)
  for (const message of config.problems) problems.add(new TrainError('CONFIG_INVALID', message))
  const { settings } = config
  const { rows } = settings
  if (typeof rows === 'string' && !trainer.rows.includes(rows)) problems.add(unknownRows(trainer, rows, inputs.takersOfAllRows))
  const failed = new Set(config.failed)
  const warnings: string[] = []
  const { train, test, findings } = await checkDatasets(problems, {
    datasets: { train: inputs.train, test: inputs.test },
    names: config.names,
    isRead: !failed.has('data'),
    baseDirectory: inputs.baseDirectory,
    configDirectory: config.directory,
    trainFilesKey: trainer.keys.trainFiles,
    kindKey: settings.evaluation.kindKey,
  })
  warnings.push(...findings.warnings)
  const start = failed.has('model')
    ? undefined
    : await attempt(() =>
        findStartingModel({
          model: config.names.model ?? settings.model.path,
          key: trainer.keys.model,
          directory: config.directory,
          warmUp: settings.model.warmUp,
          fromScratch: options.fromScratch,
          takesHubNames: true,
        }),
      )
  if (agent) {
    const { engines } = inputs.launchers
    const { agents } = agent.program
    await attempt(() => checkRows(agents, rows))
    const warning = rowsWarning(agents, rows)
    if (warning !== null) warnings.push(warning)
    const side = { agent, settings, failed, policies: start && [policyName(start.model)], directory: config.directory, engines }
    warnings.push(...(await checkAgentSide(problems, side)))
  }
  const folder = start?.model && existsSync(start.model) ? start.model : null
  if (folder !== null) {
    const template = await attempt(() => checkModelTemplate(config, trainer, folder))
    const tasks = [train, test].flatMap((dataset) => dataset?.tasks ?? [])
    // Prompt lengths mean nothing where the template is refused.
    const lengths = template && (await attempt(() => checkModelPrompts(config, trainer, folder, tasks)))
    warnings.push(...(template ?? []), ...(lengths ?? []))
  }
  const reward = failed.has('reward') ? undefined : await attempt(() => rewardOf(trainer, config, inputs, python?.path))
  const why = `${trainer.name} asks for the reward of each row by itself; trainers that run our own loop (local, tinker) ask for groups`
  if (reward && !settings.reward.native) await attempt(() => refuseGroupReward(reward, why))
  for (const { level, message } of python?.report.problems ?? []) if (level === 'warning') warnings.push(message)
  let planned: TrainerPlan | undefined
  if (agent && train && start && config.version !== null) {
    const path = join(resolve(inputs.runPath), 'planned')
    const model = start.model ?? join(path, 'model')
    const parts = { path, name: 'planned', agent: describeAgent(agent), train, test: test ?? null, reward: reward ?? null, model }
    planned = await trainer.plan(config, toPlanInputs(parts))
    for (const message of planned.problems) if (!config.problems.includes(message)) problems.add(new TrainError('CONFIG_INVALID', message))
  }
  if (missing && problems.any()) problems.add(missing)
  problems.throwAny()
  if (missing) {
    const what = `${trainer.name}'s own keys, what is filled in between them, and what this machine can train`
    const message = `Not checked, because no ${trainer.name} was found: ${what}. "aworld-train doctor --engine ${trainer.name}" says where it was looked for.`
    options.onEvent?.({ type: 'warning-raised', at: Date.now(), code: 'CONFIG_WARNING', message })
  }
  // The check of the agent has reported the problem; this check has found none.
  if (!agent || !train || reward === undefined || !start || !python || !planned) return { config, plan: undefined, missing }

  const plan: PythonTrainingPlan = {
    trainer,
    name: trainingName(options, settings, agent.program),
    config,
    notes: [...new Set([...config.notes, ...planned.notes, ...findings.notes, ...planned.warnings, ...warnings])],
    findings: { notes: findings.notes, warnings },
    seed: options.seed ?? settings.seed,
    program: agent.program,
    agent,
    launchers: inputs.launchers,
    train,
    test: test ?? null,
    reward,
    createEnvironment: () => inputs.createEnvironment({ baseDirectory: agent.directory, ...settings.environment }),
    createReward: async () =>
      reward === null || settings.reward.native
        ? null
        : await createNamedReward(reward, settings.reward, Object.keys(settings.models), {
            python: python.path,
            openVerifier: inputs.openVerifier,
          }),
    ...start,
    python,
    planned,
  }
  return { config, plan, missing }
}

function unknownRows({ name, rows }: Trainer, chosen: string, takersOfAll: readonly string[]): TrainError {
  const others = chosen === 'all' ? `, or trainEngineName to ${takersOfAll.join(' or ')}` : ''
  const message = `rows is "${chosen}", and a batch of ${name} holds other rows of a rollout: set it to ${rows.join(' or ')}${others}.`
  return new TrainError('CONFIG_INVALID', message)
}

/** Reads the configuration and finds the Python whose framework has read it; `missing` is the reason for none. */
async function readConfig(
  trainer: Trainer,
  source: unknown,
  { options, baseDirectory, sections }: TrainingInputs,
): Promise<{ config: Config; python: FoundPython | null; missing: TrainError | null }> {
  const { steps, seed, model } = options
  let python: FoundPython | null = null
  let missing: TrainError | null = null
  const config = await trainer.readConfig(typeof source === 'string' ? resolve(baseDirectory, source) : (source as object | undefined), {
    baseDirectory,
    environment: process.env,
    sections,
    overrides: { steps, seed, model: model && resolve(model) },
    async findPython(named) {
      try {
        python = await findTrainerPython(trainer, named, baseDirectory)
        return python.path
      } catch (error) {
        if (!(error instanceof TrainError)) throw error
        missing = error
        return null
      }
    },
  })
  return { config, python, missing }
}

async function rewardOf(
  { name, keys }: Trainer,
  { names, settings, directory }: Config,
  { reward, baseDirectory }: TrainingInputs,
  python: string | undefined,
): Promise<NamedReward | null> {
  const { native } = settings.reward
  const named = { reward, baseDirectory, ...names.reward, configDirectory: directory, python }
  const found = native ? await findReward(named) : await requireReward(named, name, keys)
  if (found && native && typeof found.source !== 'string')
    throw new TrainError(
      'CONFIG_INVALID',
      `rewardFunc is a function and reward.native leaves scoring to ${name}, which calls Python; keep one.`,
    )
  return found
}

/** Finds the interpreter that has the framework; `named` replaces AWORLD_TRAIN_PYTHON. Throws TRAINER_ENVIRONMENT if there is none. */
async function findTrainerPython(
  { python }: Pick<PythonTrainer, 'python'>,
  named: string | null,
  projectDirectory: string,
): Promise<FoundPython> {
  const env = named === null ? process.env : { ...process.env, AWORLD_TRAIN_PYTHON: named }
  try {
    return await findPython(python, { env, projectDirectory })
  } catch (error) {
    if (!(error instanceof TrainError)) throw error
    throw new TrainError(error.code, `${error.message}\nOr set trainEngineName: 'local' for the engine in the box.`, { cause: error })
  }
}
