import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { type AgentProgram, type Episode, type RolloutWriter, TrainError } from '@aworld-train/core'
import { verlKeys } from '@aworld-train/trainers/verl'
import {
  chosenColumn,
  collectProblems,
  createNamedReward,
  findReward,
  type LocalConfig,
  loadDataset,
  openAgentSide,
  openPolicyGateway,
  openRolloutParts,
  parseLocalConfig,
  refuseProblems,
  routeSettings,
  toLimits,
} from '@aworld-train/training'
import { loadTrainableAgent } from '../checks/trainable-agent.ts'
import { createEnvironment, openVerifier } from '../environment.ts'
import type { LocalPlan } from '../local/plan.ts'
import { planPolicies, withPolicies } from '../local/plan-policies.ts'
import { openStage } from '../local/stage.ts'
import { localPolicy } from '../policies/local-policy.ts'
import { trainerSections } from '../policies/trainer-sections.ts'
import type { TrainingDefinition } from '../training-definition.ts'
import { createScriptedPolicy, type Script } from './scripted-policy.ts'

export interface RunOnceOptions {
  /** A row of a dataset, with a prompt and, for the reward, an answer; or the prompt alone. */
  readonly task: string | Readonly<Record<string, unknown>>
  /**
   * Answers of the policy that replace a model: a list, or one for each agent. Their tokens are those of the configured model folder; without
   * one, each byte is a token. Limits of tokens do not cut a script.
   */
  readonly script?: Script | undefined
  /** Folder of the model to sample. Default: the configured one. */
  readonly model?: string | undefined
  /** Number of the rollout among those of its task, which selects other random numbers. Default 0. */
  readonly sample?: number | undefined
  readonly seed?: number | undefined
  readonly signal?: AbortSignal | undefined
}

/** The parts of a training that one rollout needs; a `defineTraining` has them. */
export type OnceTraining = Pick<TrainingDefinition, 'agent' | 'rewardFunc' | 'config' | 'baseDirectory' | 'onEvent'>

/**
 * Runs the agent once on one task, as a training would, and resolves to the episode: its turns with their tokens, its tool calls, and its
 * reward if the training has one. Failures of agent, tools and reward are in the episode. Leaves no files.
 */
export async function runOnce(training: OnceTraining, options: RunOnceOptions): Promise<Episode> {
  const { script, sample = 0, signal = new AbortController().signal } = options
  const baseDirectory = resolve(training.baseDirectory ?? '.')
  const configDirectory = typeof training.config === 'string' ? dirname(resolve(baseDirectory, training.config)) : baseDirectory
  const source = typeof training.config === 'string' ? resolve(baseDirectory, training.config) : training.config
  const config = forOnce(parseLocalConfig(source, { translator: verlKeys, others: trainerSections }).config, options, configDirectory)
  const agent = await loadTrainableAgent(training.agent, baseDirectory)
  const { program, directory: agentDirectory } = agent
  const row = typeof options.task === 'string' ? { prompt: options.task } : options.task
  const loaded = await loadDataset([row], {
    split: 'train',
    answers: 'optional',
    promptKey: chosenColumn(config.data.promptKey),
    filesDirectory: baseDirectory,
  })
  refuseProblems(loaded)
  const task = loaded.tasks[0]!
  const { path, name } = config.reward
  const reward = await findReward({ reward: training.rewardFunc, baseDirectory, path, name, configDirectory })

  await using stack = new AsyncDisposableStack()
  const parts = await openRolloutParts(stack, {
    createEnvironment: () => createEnvironment({ baseDirectory: agentDirectory, ...config.environment }),
    createReward: async () => reward && (await createNamedReward(reward, config.reward, Object.keys(config.models), { openVerifier })),
  })
  const onEvent = training.onEvent ?? (() => {})
  const { seed } = config
  const common = { store: createRecord(), onEvent }
  if (script) {
    const directory = stack.adopt(await mkdtemp(join(tmpdir(), 'aworld-train-script-')), (each) => rm(each, { recursive: true }))
    const policy = await createScriptedPolicy({ model: config.model, script, agents: program.agents.map(({ name }) => name), directory })
    const gateway = await openPolicyGateway(stack, {
      policies: { [policy.engine.model.name]: { ...policy, ...routeSettings(config), maxPromptBytes: null } },
      models: config.models,
      directory: agentDirectory,
      seed,
      calls: config.gateway,
      agents: program.agents,
      onEvent,
    })
    const answers = { source: 'the task', byTask: loaded.answers }
    const { limits, concurrency } = config
    const runner = openAgentSide(stack, {
      ...parts,
      ...common,
      program,
      baseDirectory: agentDirectory,
      gateway,
      answers,
      limits: toLimits(limits),
      concurrency,
      scoreUnfinished: config.reward.unfinished,
      rewardModels: { names: Object.keys(config.models), maxCost: config.reward.maxCost },
    })
    return await runner.run(request(policy.engine.model.name, policy.engine.model.contextLength), signal)
  }
  const policies = await policiesOf(config, configDirectory, program)
  const plan = { config, configDirectory, seed, program: withPolicies(program, policies), agent, policies }
  const models = policies.map(({ model }) => model!)
  const stage = stack.adopt(await openStage({ models, plan, parts, answers: loaded.answers, signal, inProcess: true, ...common }), (each) =>
    each.close(),
  )
  return await stage.runner.run(request(stage.policy.engine.name, config.sampling.maxTokens), signal)

  function request(policy: string, maxTokens: number) {
    const sampling = { ...config.sampling, maxTokens, stop: [], seed }
    const key = `once/${task.id}/${sample}`
    return { version: 1 as const, key, task, group: `once/${task.id}`, sample, split: 'train', policy, sampling, limits: {} }
  }
}

/** The policies of a configuration. Throws CONFIG_INVALID if one has no model yet. */
async function policiesOf(settings: LocalConfig, directory: string, { agents }: AgentProgram): Promise<LocalPlan['policies']> {
  const own = Object.values(settings.policies)
  if ((own.length === 0 ? [settings.model] : own).some(({ path }) => path === null)) {
    throw new TrainError(
      'CONFIG_INVALID',
      'There is no model to run: the warm-up makes it when you train. Pass `script` with what the policy says, or `model` with the folder of a trained one.',
    )
  }
  const problems = collectProblems()
  const choice = { settings, kind: localPolicy, extension: {}, directory, model: undefined, fromScratch: false, agents }
  const policies = await planPolicies(problems, choice)
  problems.throwAny()
  return policies!
}

/** The configuration for one rollout, with absolute paths. */
function forOnce(config: LocalConfig, { model, seed, script }: RunOnceOptions, configDirectory: string): LocalConfig {
  const configured = config.model.path === null ? null : resolve(configDirectory, config.model.path)
  return {
    ...config,
    model: { ...config.model, path: model === undefined ? configured : resolve(model) },
    // Only training needs a reference policy.
    training: { ...config.training, klCoefficient: 0 },
    limits: script ? { ...config.limits, maxTokens: null } : config.limits,
    seed: seed ?? config.seed,
    concurrency: 1,
  }
}

/** A record that only counts the attempts of a rollout. */
function createRecord(): RolloutWriter {
  let attempts = 0
  return {
    queue: async () => {},
    begin: async () => ({ attempt: attempts++, episode: null }),
    appendTurn: async () => {},
    finish: async () => {},
    keepScores: async () => {},
    cancel: async () => {},
  }
}
