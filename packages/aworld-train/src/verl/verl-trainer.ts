import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { type RunReport, TrainError } from '@aworld-train/protocol'
import {
  checkModels,
  checkRecordings,
  collectProblems,
  datasetNotes,
  findReward,
  loadNamedDataset,
  type NamedReward,
  type ProblemCollection,
  policyName,
  requireKinds,
  tryReward,
} from '@aworld-train/run'
import {
  type FoundPython,
  findPython,
  formatOverride,
  planVerl,
  readVerlConfig,
  readWithVerl,
  resolveKey,
  type VerlConfig,
} from '@aworld-train/trainer-verl'
import { createReward, type DatasetSource, type LoadedDataset, type RewardSource } from '@aworld-train/training'
import { PlanningTrainer } from '../checks/planning-trainer.ts'
import { createEnvironment } from '../environment.ts'
import { type DryRunReport, dryRunVerl } from './dry-run.ts'
import { describeAgent, toVerlRun, withModel } from './plan-run.ts'
import { runVerlTraining } from './run-verl-training.ts'
import { checkModelPrompts, checkModelTemplate, findStartingModel, stringAt } from './starting-model.ts'
import type { VerlTrainingPlan } from './verl-training-plan.ts'

const rewardKey = 'reward.custom_reward_function'

/** Trains with verl: checks the modules of the training, renders verl's configuration, serves rollouts to verl and follows it. */
export class VerlTrainer extends PlanningTrainer<VerlTrainingPlan> {
  /** Why there is no plan although nothing else stands against the training: no Python with verl was found. */
  #missing: TrainError | null = null

  override async checkReward(rewardFunc?: unknown): Promise<void> {
    this.inputs.reward = rewardFunc as RewardSource | undefined
    if (this.inputs.reward === undefined) return
    // A reward in Python runs in verl's interpreter; the check of the configuration reports a missing one.
    const isPython = typeof this.inputs.reward === 'string' && /\.py(?:#|$)/.test(this.inputs.reward)
    const found = isPython ? await this.#findPython(null).catch(() => null) : null
    await tryReward(this.inputs.reward, this.baseDirectory, found?.path)
  }

  /** Reads the configuration, then what it names: datasets, reward, model, Python; then asks what verl would be started with. */
  override async checkConfig(config?: unknown): Promise<VerlConfig> {
    const problems = collectProblems()
    const { attempt } = problems
    const { read, python, missing } = await this.#readConfig(config, problems)
    for (const message of read.problems) problems.add(new TrainError('CONFIG_INVALID', message))
    const { settings } = read
    const findings: string[] = []
    let notes: readonly string[] = []
    let tree: VerlTrainingPlan['tree'] = {}
    const train = await attempt(() => this.#dataset('trainDataset', this.inputs.train, read, 'train'))
    const test = await attempt(() => this.#dataset('testDataset', this.inputs.test, read, 'test'))
    if (train === null)
      problems.add(new TrainError('DATASET_INVALID', 'There is no training data; pass trainDataset, or name files in data.train_files.'))
    findings.push(...datasetNotes(train, test))
    await attempt(() => requireKinds(settings.evaluation.kindKey, test))
    const start = await attempt(() => findStartingModel(read, { fromScratch: this.inputs.options.fromScratch ?? false }))
    const agent = this.inputs.agent
    if (agent && start)
      await attempt(() => checkModels(agent.program.agents, { frozen: Object.keys(settings.models), policy: policyName(start.model) }))
    if (agent) await attempt(() => checkRecordings(settings.models, agent.directory))
    const folder = start?.model && existsSync(start.model) ? start.model : null
    if (folder !== null) {
      const template = await attempt(() => checkModelTemplate(read, folder))
      const tasks = [train, test].flatMap((dataset) => dataset?.tasks ?? [])
      // Prompt lengths mean nothing where the template is refused.
      const lengths = template && (await attempt(() => checkModelPrompts(read, folder, tasks)))
      findings.push(...(template ?? []), ...(lengths ?? []))
    }
    const reward = await attempt(() => this.#rewardOf(read, python?.path))
    for (const { level, message } of python?.report.problems ?? []) if (level === 'warning') findings.push(message)
    if (agent && train && start && read.verl !== null) {
      const path = join(resolve(this.runPath), 'planned')
      const planned = await planVerl(
        withModel(read, start.model ?? join(path, 'model')),
        toVerlRun({
          path,
          name: 'planned',
          agent: describeAgent(agent),
          train,
          test: test ?? null,
          reward: reward ?? null,
          model: start.model,
        }),
      )
      for (const message of planned.problems) if (!read.problems.includes(message)) problems.add(new TrainError('CONFIG_INVALID', message))
      notes = planned.notes
      tree = planned.tree
    }
    this.#missing = missing
    if (missing && problems.any()) problems.add(missing)
    problems.throwAny()
    if (missing) {
      const message = `Not checked, because no verl was found: verl's own keys, what is filled in between them, and what this machine can train. ${missing.message}`
      this.inputs.options.onEvent?.({ type: 'warning-raised', at: Date.now(), code: 'CONFIG_NOTE', message })
    }
    // The check of the agent has reported the problem; this check has found none.
    if (!agent || !train || reward === undefined || !start || !python) return read

    this.planned = {
      name: this.inputs.options.name ?? agent.program.agents.find(({ trainable }) => trainable)?.name ?? 'agent',
      config: read,
      notes: [...new Set([...read.notes, ...notes, ...findings])],
      findings,
      seed: this.inputs.options.seed ?? settings.seed,
      program: agent.program,
      agent: describeAgent(agent),
      agentFiles: agent.files,
      train,
      test: test ?? null,
      reward,
      createEnvironment: () => createEnvironment({ baseDirectory: agent.directory }),
      createReward: async () =>
        reward === null || settings.reward.native
          ? null
          : await createReward(reward.source, {
              baseDirectory: reward.directory,
              timeoutMs: settings.reward.timeoutMs,
              memoryMb: settings.reward.memoryMb,
              rewardInput: settings.reward.input,
              python: python.path,
            }),
      ...start,
      python,
      tree,
    }
    return read
  }

  protected override readyPlan(): VerlTrainingPlan {
    if (this.#missing) throw this.#missing
    return super.readyPlan()
  }

  override async train(signal: AbortSignal = new AbortController().signal): Promise<RunReport> {
    return await runVerlTraining(this.readyPlan(), { runPath: this.runPath, options: this.inputs.options, signal })
  }

  override async dryRun(signal?: AbortSignal): Promise<DryRunReport> {
    return await dryRunVerl(this.readyPlan(), this.runPath, signal)
  }

  /** The configuration, and the Python whose verl read it; `missing` says why there is none. */
  async #readConfig(
    config: unknown,
    { attempt }: ProblemCollection,
  ): Promise<{ read: VerlConfig; python: FoundPython | null; missing: TrainError | null }> {
    const { steps, seed, model } = this.inputs.options
    const source = typeof config === 'string' ? resolve(this.baseDirectory, config) : (config as Record<string, unknown> | undefined)
    let python: FoundPython | null = null
    let missing: TrainError | null = null
    const read = await readVerlConfig(source, {
      verl: async (named, written) => {
        try {
          python = await this.#findPython(named)
        } catch (error) {
          if (!(error instanceof TrainError)) throw error
          missing = error
          return null
        }
        const found = python.path
        return (await attempt(() => readWithVerl(written, { python: found }))) ?? null
      },
      baseDirectory: this.baseDirectory,
      environment: process.env,
      arguments: [
        ...(steps === undefined ? [] : [`trainer.total_training_steps=${steps}`]),
        ...(seed === undefined ? [] : [`data.seed=${seed}`]),
        ...(model === undefined ? [] : [formatOverride('actor_rollout_ref.model.path', resolve(model))]),
      ],
    })
    return { read, python, missing }
  }

  /** One dataset from the option or the files of the configuration; `null` where neither names one. */
  async #dataset(
    option: string,
    dataset: DatasetSource | undefined,
    config: VerlConfig,
    split: 'train' | 'test',
  ): Promise<LoadedDataset | null> {
    const { settings, directory } = config
    const named = split === 'train' ? settings.data.trainFiles : settings.data.testFiles
    const files = named.length > 0 ? named : filesOf(config, split === 'train' ? 'data.train_files' : 'data.val_files')
    return await loadNamedDataset({
      option,
      dataset,
      baseDirectory: this.baseDirectory,
      files,
      configDirectory: directory,
      split,
      promptKey: stringAt(config, 'data.prompt_key') ?? settings.data.promptKey,
    })
  }

  async #rewardOf(config: VerlConfig, python: string | undefined): Promise<NamedReward | null> {
    const { settings, directory } = config
    const path = settings.reward.path ?? stringAt(config, `${rewardKey}.path`)
    const name = settings.reward.name ?? stringAt(config, `${rewardKey}.name`)
    const found = await findReward({
      reward: this.inputs.reward,
      baseDirectory: this.baseDirectory,
      path,
      name,
      configDirectory: directory,
      python,
    })
    if (found && settings.reward.native && typeof found.source !== 'string')
      throw new TrainError(
        'CONFIG_INVALID',
        'rewardFunc is a function and reward.native leaves scoring to verl, which calls Python; keep one.',
      )
    if (found || settings.reward.native) return found
    throw new TrainError(
      'CONFIG_INVALID',
      'There is no reward; pass rewardFunc, name reward.custom_reward_function.path in the configuration, or set aworldTrain.reward.native for the one of verl.',
    )
  }

  async #findPython(named: string | null) {
    const env = named === null ? process.env : { ...process.env, AWORLD_TRAIN_PYTHON: named }
    try {
      return await findPython({ env, projectDirectory: this.baseDirectory })
    } catch (error) {
      if (!(error instanceof TrainError)) throw error
      throw new TrainError(error.code, `${error.message}\nOr set trainEngineName: 'local' for the engine in the box.`, { cause: error })
    }
  }
}

/** Files that a key of verl names: one path or a list. */
function filesOf(config: VerlConfig, path: string): string[] {
  const value = resolveKey(config, path)
  const files: readonly unknown[] = Array.isArray(value) ? value : value === undefined || value === null || value === '' ? [] : [value]
  return files.map((file) => {
    if (typeof file === 'string') return resolve(config.directory, file)
    throw new TrainError('CONFIG_INVALID', `${path} names ${JSON.stringify(file)}, which is no path of a file.`)
  })
}
