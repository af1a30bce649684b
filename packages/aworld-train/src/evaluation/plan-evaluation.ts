import { dirname, resolve } from 'node:path'
import { type AgentProgram, type Sampling, TrainError } from '@aworld-train/core'
import { verlKeys } from '@aworld-train/trainers/verl'
import {
  checkAgentSide,
  chosenColumn,
  collectProblems,
  createNamedReward,
  type DatasetSource,
  type EvaluationPlan,
  findReward,
  type LoadedAgent,
  type LoadedDataset,
  type LocalConfig,
  loadDataset,
  type PlannedModel,
  type ProblemCollection,
  policyName,
  type RewardSource,
  readLocalConfig,
  refuseProblems,
  requireKinds,
  resolveSource,
  tryReward,
} from '@aworld-train/training'
import { createEnvironment, openVerifier } from '../environment.ts'
import { launcherEngines, workerEntry } from '../launchers.ts'
import { loadAgent, type TrainableAgent } from '../load/load-agent.ts'
import { planPolicies, withPolicies } from '../local/plan-policies.ts'
import { localPolicy } from '../policies/local-policy.ts'
import { tinkerPolicy } from '../policies/tinker-policy.ts'
import { trainerSections } from '../policies/trainer-sections.ts'
import { modelsOf } from './find-weights.ts'
import { type ModelFlags, type ModelForm, readModelForm } from './model-forms.ts'
import { noModel, plannedFrozen, plannedPolicies, plannedTokens } from './planned-models.ts'

/** An agent, tasks and a model, and what is asked of them. Paths are relative to `baseDirectory`. */
export interface EvaluationOptions extends ModelFlags {
  readonly agent: TrainableAgent
  readonly dataset: DatasetSource | undefined
  /** Without one, answers are collected and not scored. */
  readonly rewardFunc?: RewardSource | undefined
  /** Path of a YAML or JSON file, or an object. Only what an evaluation needs of it is read. */
  readonly config?: string | object | undefined
  /**
   * `openai:NAME`, `anthropic:NAME`, `http://host/v1#NAME`, a model folder, a checkpoint or a run, or a name in `models` of the
   * configuration. Default: the configured policy; agents with addresses of their own need none.
   */
  readonly model?: string | undefined
  /** Rollouts of each task. Default: `evaluation.samplesPerPrompt`. */
  readonly samples?: number | undefined
  readonly seed?: number | undefined
  /** First part of the run's folder name. Default: the name of the agent and `eval`. */
  readonly name?: string | undefined
  /** Column that names a task's kind. Default: `evaluation.kindKey`. */
  readonly kindKey?: string | undefined
  /** Rollouts at once. Default: `concurrency`. */
  readonly concurrency?: number | undefined
  /** US dollars that the run may cost. */
  readonly budget?: number | undefined
  readonly baseDirectory?: string | undefined
  /** Whether a Tinker service has the policy of the configuration. Default `false`. */
  readonly atTinker?: boolean | undefined
  readonly command?: EvaluationPlan['command'] | undefined
}

/** Runs every check. CONFIG_INVALID names all problems at once. Writes nothing. */
export async function planEvaluation(options: EvaluationOptions, signal: AbortSignal): Promise<EvaluationPlan> {
  const baseDirectory = resolve(options.baseDirectory ?? '.')
  const { config } = options
  const configDirectory = typeof config === 'string' ? dirname(resolve(baseDirectory, config)) : baseDirectory
  const source = typeof config === 'string' ? resolve(baseDirectory, config) : config
  const problems = collectProblems()
  const { attempt } = problems

  const agent = await attempt(() => loadAgent(options.agent, baseDirectory))
  const form = await attempt(() => formOf(options, source, { baseDirectory, signal }))
  const atTinker = form?.kind === 'weights' ? form.weights.atTinker : (options.atTinker ?? false)
  const kind = atTinker ? tinkerPolicy : localPolicy
  const readOptions = { translator: verlKeys, extension: kind.extension, others: trainerSections }
  const read = await attempt(() => readLocalConfig(source, readOptions))
  const failures = read?.problems ?? []
  if (failures.length > 0) problems.add(new TrainError('CONFIG_INVALID', failures.join('\n'), { details: { problems: failures } }))
  const settings = withFlags((read ?? readLocalConfig({})).config, options)

  const dataset = await attempt(() => loadTasks(options.dataset, { settings, baseDirectory, configDirectory }))
  await attempt(() => requireKinds(settings.evaluation.kindKey, dataset))
  const { path, name } = settings.reward
  const reward = await attempt(async () => {
    if (options.rewardFunc !== undefined) await tryReward(options.rewardFunc, baseDirectory)
    // A reward that is named here stands over that of the configuration.
    const configured = options.rewardFunc === undefined ? path : null
    return await findReward({ reward: options.rewardFunc, baseDirectory, path: configured, name, configDirectory })
  })
  if (agent && form !== undefined && read) {
    const chosen = await chooseModel(problems, {
      agent,
      form,
      settings,
      extension: read.extension,
      kind,
      directory: configDirectory,
    })
    if (chosen) {
      const agentSide = {
        agent: { ...agent, program: chosen.program },
        settings: { ...settings, models: othersThan(options.model, settings.models) },
        failed: new Set(read.failed),
        policies: chosen.names,
        directory: configDirectory,
        engines: launcherEngines,
      }
      const warnings = await checkAgentSide(problems, agentSide)
      requirePrice(problems, options, chosen.model)
      for (const [other, { price }] of Object.entries(othersThan(options.model, settings.models)))
        if (options.budget !== undefined && price === null)
          problems.add(
            new TrainError(
              'CONFIG_INVALID',
              `A budget needs the price of every model that may be asked; set models.${other}.price, or leave --budget out.`,
            ),
          )
      problems.throwAny()
      if (dataset && reward !== undefined) return toPlan({ ...chosen, agent, dataset, reward, warnings })
    }
  }
  problems.throwAny()
  throw new TrainError('CONFIG_INVALID', 'The evaluation cannot start.')

  function toPlan(found: {
    readonly agent: LoadedAgent
    readonly dataset: LoadedDataset
    readonly reward: EvaluationPlan['reward']
    readonly warnings: readonly string[]
    readonly model: PlannedModel
    readonly program: EvaluationPlan['program']
  }): EvaluationPlan {
    const { agent: loaded, dataset: tasks, reward: named, warnings, model, program } = found
    return {
      name: options.name ?? `${settings.experimentName ?? program.agents[0]?.name ?? 'agent'}-eval`,
      seed: settings.seed,
      agent: loaded,
      program,
      dataset: tasks,
      samplesPerTask: settings.evaluation.samplesPerPrompt,
      sampling: evaluationSampling(settings),
      settings,
      configDirectory,
      model,
      reward: named,
      createEnvironment: () => createEnvironment({ baseDirectory: loaded.directory, ...settings.environment }),
      createReward: async () => named && (await createNamedReward(named, settings.reward, Object.keys(settings.models), { openVerifier })),
      launchers: { engines: launcherEngines, entry: workerEntry },
      budget: options.budget ?? null,
      notes: [...(read?.notes ?? []), ...tasks.notes],
      warnings: [...(read?.warnings ?? []), ...tasks.warnings, ...warnings],
      command: options.command ?? null,
    }
  }
}

/** The models of a configuration without the one that is evaluated, which may have its name. */
const othersThan = (evaluated: string | undefined, models: LocalConfig['models']): LocalConfig['models'] =>
  Object.fromEntries(Object.entries(models).filter(([name]) => name !== evaluated))

/** The sampling of evaluations. A third party's model is asked as the agent asks it. */
export const evaluationSampling = ({ evaluation: { temperature, topP, topK }, sampling, seed }: LocalConfig): Sampling => ({
  temperature,
  topP,
  topK,
  maxTokens: sampling.maxTokens,
  stop: [],
  seed,
})

/** What `--model` names; `null` without it. */
async function formOf(
  options: EvaluationOptions,
  config: string | object | undefined,
  place: { readonly baseDirectory: string; readonly signal: AbortSignal },
): Promise<ModelForm | null> {
  if (options.model === undefined) return null
  const { models } = readLocalConfig(config, { translator: verlKeys, others: trainerSections }).config
  return await readModelForm(options.model, { models, flags: options, ...place })
}

function withFlags(config: LocalConfig, { samples, seed, kindKey, concurrency }: EvaluationOptions): LocalConfig {
  return {
    ...config,
    seed: seed ?? config.seed,
    concurrency: concurrency ?? config.concurrency,
    evaluation: {
      ...config.evaluation,
      samplesPerPrompt: samples ?? config.evaluation.samplesPerPrompt,
      kindKey: kindKey ?? config.evaluation.kindKey,
    },
    // No reference policy is needed.
    training: { ...config.training, klCoefficient: 0 },
  }
}

interface DatasetPlaces {
  readonly settings: LocalConfig
  readonly baseDirectory: string
  readonly configDirectory: string
}

async function loadTasks(
  source: DatasetSource | undefined,
  { settings, baseDirectory, configDirectory }: DatasetPlaces,
): Promise<LoadedDataset> {
  const { promptKey, testFiles } = settings.data
  const files = testFiles.map((file) => resolve(configDirectory, file))
  const chosen = source === undefined ? files : resolveSource(source, baseDirectory)
  if (Array.isArray(chosen) && chosen.length === 0)
    throw new TrainError(
      'DATASET_INVALID',
      'There is nothing to evaluate; name a dataset (--data), or a test set in testDataset or data.testFiles. Training data never stands in for it.',
    )
  const loaded = await loadDataset(chosen, {
    split: 'test',
    answers: 'optional',
    promptKey: chosenColumn(promptKey),
    filesDirectory: baseDirectory,
  })
  refuseProblems(loaded)
  return loaded
}

interface ModelChoice {
  readonly agent: LoadedAgent
  readonly form: ModelForm | null
  readonly settings: LocalConfig
  readonly extension: Readonly<Record<string, unknown>>
  readonly kind: typeof localPolicy
  /** Folder that paths of the configuration are relative to. */
  readonly directory: string
}

interface ChosenModel {
  readonly model: PlannedModel
  readonly program: EvaluationPlan['program']
  /** Names that agents may ask for beside those of frozen models. */
  readonly names: readonly string[]
}

async function chooseModel(problems: ProblemCollection, choice: ModelChoice): Promise<ChosenModel | undefined> {
  const { agent, form, settings, extension, kind, directory } = choice
  const { program } = agent
  if (form?.kind === 'frozen')
    return {
      model: plannedFrozen(form.name, form.settings, agent.directory),
      program: asking(program, form.name),
      names: [form.name],
    }
  if (form?.kind === 'none' || (form === null && !program.agents.some(asksPolicy))) return { model: noModel, program, names: [] }
  if (form?.kind === 'served') {
    const { name } = form.served
    return { model: plannedTokens(form.served, settings.model), program: asking(program, name), names: [name] }
  }
  const { model, checkpoint } = form?.weights ?? {}
  if (form === null && settings.model.path === null && Object.keys(settings.policies).length === 0) {
    problems.add(
      new TrainError(
        'CONFIG_INVALID',
        'There is no model to evaluate; name one with --model: openai:NAME, anthropic:NAME, http://host/v1#NAME, a model folder, a checkpoint or a run; or none, for an agent that asks an address of its own.',
      ),
    )
    return undefined
  }
  const policies = await planPolicies(problems, { settings, kind, extension, directory, model, fromScratch: false, agents: program.agents })
  if (!policies) return undefined
  const planned = { policies, program: withPolicies(program, policies) }
  const models = await problems.attempt(() => modelsOf(planned, checkpoint))
  return (
    models && {
      model: plannedPolicies(planned, { models, checkpoint: checkpoint === undefined ? null : resolve(checkpoint) }),
      program: planned.program,
      names: policies.map((policy) => policy.name ?? policyName(policy.model)),
    }
  )
}

/** Whether an agent asks the model that is evaluated. */
const asksPolicy = ({ trainable, policy }: AgentProgram['agents'][number]) => trainable || policy !== undefined

/** The program with its agents' policies replaced by one model. An agent that asks a frozen model or an address of its own does so still. */
function asking<Program extends AgentProgram>(program: Program, name: string): Program {
  return { ...program, agents: program.agents.map((agent) => (asksPolicy(agent) ? { ...agent, model: name } : agent)) }
}

function requirePrice(problems: ProblemCollection, { budget }: EvaluationOptions, model: PlannedModel): void {
  if (budget === undefined || model.hasPrice) return
  const message =
    model === noModel
      ? 'A budget needs the cost of calls, and the agent asks an address of its own; leave --budget out.'
      : 'A budget needs the price of the model; give it with --price INPUT,OUTPUT in US dollars for a million tokens, or as "price" in "models".'
  problems.add(new TrainError('CONFIG_INVALID', message))
}
