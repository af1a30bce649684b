import { dirname, join, resolve } from 'node:path'
import { type EvaluationWithResults, type RunReport, TrainError } from '@aworld-train/core'
import { verlKeys } from '@aworld-train/trainers/verl'
import {
  checkAgentSide,
  checkDatasets,
  chosenColumn,
  collectProblems,
  createNamedReward,
  type DatasetSource,
  evaluateAgent,
  findLoss,
  type LoadedDataset,
  type LocalConfig,
  loadDataset,
  passWarnings,
  policyName,
  type RewardSource,
  readLocalConfig,
  refuseGroupReward,
  refuseProblems,
  requireReward,
  requireTrainable,
  resolveSource,
  trainingName,
  tryReward,
} from '@aworld-train/training'
import { PlanningTrainer } from '../checks/planning-trainer.ts'
import { createEnvironment, openVerifier } from '../environment.ts'
import { modelsOf } from '../evaluation/find-weights.ts'
import { evaluationSampling } from '../evaluation/plan-evaluation.ts'
import { plannedPolicies } from '../evaluation/planned-models.ts'
import { launcherEngines, workerEntry } from '../launchers.ts'
import { localPolicy, threadNotes } from '../policies/local-policy.ts'
import type { PolicyKind } from '../policies/policy.ts'
import { trainerSections } from '../policies/trainer-sections.ts'
import { type OpenPolicy, openPolicy } from './open-policy.ts'
import type { LocalPlan } from './plan.ts'
import { planPolicies, withPolicies } from './plan-policies.ts'
import { runLocalTraining } from './run-local-training.ts'

/** The trainer in the box. It runs our own loop over the embedded policy, in this process. */
export class LocalTrainer extends PlanningTrainer<LocalPlan> {
  readonly #policies = new Set<OpenPolicy>()
  #trained: { readonly models: readonly string[]; readonly checkpoint: string } | null = null
  protected readonly policyKind: PolicyKind = localPolicy

  override async checkReward(rewardFunc?: unknown): Promise<void> {
    this.inputs.reward = rewardFunc as RewardSource | undefined
    if (this.inputs.reward !== undefined) await tryReward(this.inputs.reward, this.baseDirectory)
  }

  /** Reads the configuration, then the datasets, the reward and the model that it names. */
  override async checkConfig(config?: unknown): Promise<LocalConfig> {
    const configDirectory = typeof config === 'string' ? dirname(resolve(this.baseDirectory, config)) : this.baseDirectory
    const source = typeof config === 'string' ? resolve(this.baseDirectory, config) : (config as object | undefined)
    const problems = collectProblems()
    const { attempt } = problems

    const read = await attempt(() =>
      readLocalConfig(source, { translator: verlKeys, extension: this.policyKind.extension, others: trainerSections }),
    )
    if (read && read.problems.length > 0)
      problems.add(new TrainError('CONFIG_INVALID', read.problems.join('\n'), { details: { problems: read.problems } }))
    const parsed = read && read.problems.length === 0 ? read : undefined
    // The options are checked even if the configuration cannot be read.
    const settings = this.#withOverrides((read ?? readLocalConfig({})).config)
    const isRead = (section: keyof LocalConfig) => read !== undefined && !read.failed.includes(section)
    const { train, test, validation, findings } = await checkDatasets(problems, {
      datasets: { ...this.inputs, validation: this.inputs.options.validationDataset as DatasetSource | undefined },
      names: settings.data,
      isRead: isRead('data'),
      baseDirectory: this.baseDirectory,
      configDirectory,
      trainFilesKey: 'data.trainFiles',
      kindKey: settings.evaluation.kindKey,
    })

    if (isRead('training') && train) await attempt(() => requireTrainable({ config: settings, tasks: train.tasks }))
    const { baseDirectory } = this
    const names = { reward: this.inputs.reward, baseDirectory, path: settings.reward.path, name: settings.reward.name, configDirectory }
    const keys = { reward: 'reward.path', nativeReward: null }
    const reward = isRead('reward') ? await attempt(() => requireReward(names, 'local', keys)) : undefined
    const { firstSamples } = settings.training
    const waves = `training.firstSamples is ${firstSamples}, which asks for the rewards of a part of a group; leave it out, and the group is compared`
    if (reward && firstSamples !== null) await attempt(() => refuseGroupReward(reward, waves))
    const loss = isRead('training') ? await attempt(() => findLoss(settings.training.loss, configDirectory)) : undefined
    const { model, fromScratch } = this.inputs.options
    const { agent } = this.inputs
    const choice = { settings, kind: this.policyKind, directory: configDirectory, model, fromScratch, agents: agent?.program.agents }
    const policies =
      read && isRead('model') && isRead('policies') ? await planPolicies(problems, { ...choice, extension: read.extension }) : undefined
    const agentWarnings: string[] = []
    if (parsed && agent) {
      const names = policies?.map((policy) => policy.name ?? policyName(policy.model))
      const failed = new Set<string>()
      const check = {
        agent,
        settings,
        failed,
        policies: names ?? [policyName(model ?? settings.model.path)],
        directory: configDirectory,
        engines: launcherEngines,
      }
      agentWarnings.push(...(await checkAgentSide(problems, check)))
    }
    problems.throwAny()
    // The check of the agent has reported the problem; this check has found none.
    if (!agent || !train || !reward || loss === undefined || !policies || !parsed) return settings

    this.planned = {
      name: trainingName(this.inputs.options, settings, agent.program),
      config: settings,
      notes: [
        ...(parsed.ignored.length > 0 ? [`These keys of the configuration have no effect here: ${parsed.ignored.join(', ')}.`] : []),
        ...parsed.notes,
        ...(this.policyKind === localPolicy ? threadNotes(settings) : []),
        ...findings.notes,
      ],
      warnings: [...parsed.warnings, ...findings.warnings, ...agentWarnings, ...passWarnings(loss, settings.training.passes)],
      seed: settings.seed,
      program: withPolicies(agent.program, policies),
      agent,
      train,
      validation: validation ?? null,
      test: test ?? null,
      rewardSource: reward.source,
      rewardDirectory: reward.directory,
      frozenModels: Object.keys(settings.models),
      loss,
      createEnvironment: () => createEnvironment({ baseDirectory: agent.directory, ...settings.environment }),
      createReward: () => createNamedReward(reward, settings.reward, Object.keys(settings.models), { openVerifier }),
      policies,
      configDirectory,
    }
    return settings
  }

  override async train(signal: AbortSignal = new AbortController().signal): Promise<RunReport> {
    return this.#keep(await runLocalTraining(this.readyPlan(), { runPath: this.runPath, options: this.inputs.options, signal }))
  }

  override async inference(dataset: unknown, signal: AbortSignal = new AbortController().signal): Promise<EvaluationWithResults> {
    const plan = this.readyPlan()
    const loaded = dataset === undefined ? plan.test : await this.#inferenceDataset(dataset as DatasetSource, plan.config)
    if (!loaded)
      throw new TrainError(
        'DATASET_INVALID',
        'There is nothing to evaluate; pass a dataset, or name a test set in testDataset or data.testFiles. Training data never stands in for it.',
      )
    const { samples, checkpoint } = this.inputs.options
    const weights = this.#trained ?? {
      models: modelsOf(plan, checkpoint),
      checkpoint: checkpoint === undefined ? null : resolve(checkpoint),
    }
    return await evaluateAgent(
      {
        ...plan,
        name: `${plan.name}-eval`,
        dataset: loaded,
        samplesPerTask: samples ?? plan.config.evaluation.samplesPerPrompt,
        sampling: evaluationSampling(plan.config),
        settings: plan.config,
        model: plannedPolicies(plan, weights),
        reward: { source: plan.rewardSource, directory: plan.rewardDirectory },
        launchers: { engines: launcherEngines, entry: workerEntry },
        budget: null,
        command: null,
      },
      { runPath: this.runPath, options: { ...this.inputs.options, fresh: true, resume: undefined }, signal },
    )
  }

  /**
   * Starts or resumes a run with the results of the checks, for a trainer of your own that extends this one. Close it with `await using`;
   * otherwise it ends with the training.
   */
  protected async openPolicy(signal: AbortSignal = new AbortController().signal): Promise<OpenPolicy> {
    const trainer = this.constructor.name
    const policy = await openPolicy(this.readyPlan(), { runPath: this.runPath, options: this.inputs.options, signal, trainer })
    this.#policies.add(policy)
    return { ...policy, finish: async (result) => this.#keep(await policy.finish(result)) }
  }

  /** Keeps the path of a training's weights, because inference after it uses them. */
  #keep(report: RunReport): RunReport {
    const { path, model, policies, checkpoint } = report
    const models = policies ? Object.values(policies).map((policy) => policy.model) : model !== null && [model]
    if (models && checkpoint !== null) this.#trained = { models, checkpoint: join(path, checkpoint) }
    return report
  }

  override async close(): Promise<void> {
    const policies = [...this.#policies]
    this.#policies.clear()
    for (const policy of policies) await policy[Symbol.asyncDispose]()
  }

  #withOverrides(config: LocalConfig): LocalConfig {
    const { seed, steps } = this.inputs.options
    return {
      ...config,
      seed: seed ?? config.seed,
      training: { ...config.training, steps: steps ?? config.training.steps },
    }
  }

  async #inferenceDataset(source: DatasetSource, { data }: LocalConfig): Promise<LoadedDataset> {
    const loaded = await loadDataset(resolveSource(source, this.baseDirectory), {
      split: 'test',
      answers: 'optional',
      promptKey: chosenColumn(data.promptKey),
      filesDirectory: this.baseDirectory,
    })
    refuseProblems(loaded)
    return loaded
  }
}
