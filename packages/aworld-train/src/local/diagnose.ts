import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { checkTemplate, loadChatModel } from '@aworld-train/chat'
import { type Episode, errorMessage, TrainError, type TrainingTask, toTrainingSamples } from '@aworld-train/core'
import { loadModelConfig } from '@aworld-train/engines/local'
import { openRunStore } from '@aworld-train/store'
import {
  answeredTask,
  describeAgents,
  findLongPrompts,
  listTools,
  openRolloutParts,
  type RolloutParts,
  runWarmUp,
  scoreReference,
} from '@aworld-train/training'
import type { TrainingDefinition } from '../training-definition.ts'
import { LocalTrainer } from './local-trainer.ts'
import type { LocalPlan, PlannedPolicy } from './plan.ts'
import { openStage } from './stage.ts'
import { TinkerTrainer } from './tinker-trainer.ts'

export interface DoctorCheck {
  readonly name: string
  readonly ok: boolean
  /** Whether it is a warning, which does not prevent training. */
  readonly warning?: boolean
  readonly message: string
}

/** Checks a project module by module, then runs one rollout and reports its tokens. Collects every problem and leaves nothing behind. */
export async function diagnose(definition: TrainingDefinition, signal: AbortSignal): Promise<DoctorCheck[]> {
  const checks: DoctorCheck[] = []
  const attempt = async <T>(name: string, work: () => Promise<T>, describe: (value: T) => string): Promise<T | undefined> => {
    try {
      const value = await work()
      checks.push({ name, ok: true, message: describe(value) })
      return value
    } catch (error) {
      for (const problem of problemsOf(error)) {
        const message = errorMessage(problem)
        checks.push({ name: name === 'config' ? moduleOf(problem) : name, ok: false, message })
      }
      return undefined
    }
  }

  const trainer = definition.trainEngineName === 'tinker' ? new TinkerTrainer('runs') : new LocalTrainer('runs')
  trainer.useRunOptions(definition)
  const program = await attempt(
    'agent',
    () => trainer.checkAgent(definition.agent),
    ({ agents }) => agents.map(({ name, trainable }) => `${name} (${trainable ? 'trained' : 'frozen'})`).join(', '),
  )
  await trainer.checkDataset(definition.trainDataset, definition.testDataset)
  await attempt(
    'reward',
    () => trainer.checkReward(definition.rewardFunc),
    () => rewardNote(definition),
  )
  await attempt(
    'config',
    () => trainer.checkConfig(definition.config),
    () => 'dataset, reward and model are there',
  )
  const plan = trainer.plan
  if (!program || !plan) return checks
  // Which policy an agent asks for, and whether that one is trained, is known only with the configuration.
  if (plan.policies[0].name !== null) checks[0] = { name: 'agent', ok: true, message: describeAgents(plan.program.agents, null) }
  checks.push({ name: 'dataset', ok: true, message: `${plan.train.tasks.length} to train, ${plan.test?.tasks.length ?? 0} held out` })
  for (const message of plan.warnings) checks.push({ name: 'config', ok: true, warning: true, message })
  for (const message of plan.notes) checks.push({ name: 'note', ok: true, message })
  const { describe } = plan.policies[0].chosen
  if (
    describe &&
    (await attempt(
      'service',
      () => describe(signal),
      (line) => line,
    )) === undefined
  )
    return checks
  await using stack = new AsyncDisposableStack()
  const parts = await openRolloutParts(stack, plan)
  await attempt(
    'tools',
    async () => (await Promise.all(plan.program.agents.map((agent) => listTools(parts.environment, agent, signal)))).flat(),
    (servers) => {
      const functions = plan.program.agents.flatMap((agent) => agent.functions ?? [])
      return [...servers, ...functions.map((name) => `${name} (function)`)].join(', ') || 'none declared'
    },
  )
  const answered = answeredTask(plan.train)
  const { reward } = parts
  if (answered && reward) {
    await attempt(
      'reward dry run',
      () => scoreReference({ ...plan, reward, source: plan.rewardSource, task: answered }, signal),
      (score) => `${score ?? 'no reward'} for the reference answer of task "${answered.id}"`,
    )
  }
  const task = plan.train.tasks[0]
  if (!task) return checks
  const folder = await mkdtemp(join(tmpdir(), 'aworld-train-doctor-'))
  try {
    const models: string[] = []
    for (const policy of plan.policies) {
      const label = (check: string) => (policy.name === null ? check : `${check} of ${policy.name}`)
      const model =
        policy.model ??
        (await attempt(
          label('warm-up'),
          () => makeModel(plan, policy, join(folder, 'models', policy.name ?? 'model'), signal),
          () => 'made a model',
        ))
      if (model === undefined) return checks
      const { problems } = await checkTemplate(model)
      checks.push({ name: label('template'), ok: problems.length === 0, message: problems.join('\n') || 'round trip holds' })
      if (problems.length > 0) return checks
      models.push(model)
      const isEntry = policy.name === null || policy.name === plan.program.agents[0]?.model
      if (!isEntry) continue
      await attempt(
        'prompts',
        () => checkPrompts(plan, policy, model),
        (length) => `every prompt fits into the context of ${length} tokens`,
      )
    }
    const withEffects = modelsWithSideEffects(plan)
    if (withEffects.length > 0) checks.push({ name: 'rollout', ok: true, message: leftOut(withEffects) })
    else await attempt('rollout', () => tryRollout({ plan, models, parts, path: join(folder, 'run'), task }, signal), describeRollout)
    return checks
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** The problems that one check found. */
function problemsOf(error: unknown): readonly unknown[] {
  return error instanceof Error && error.cause instanceof AggregateError ? error.cause.errors : [error]
}

/** The check that a problem belongs to. The check of the configuration also reads the dataset and the reward that it names. */
function moduleOf(problem: unknown): string {
  const code = problem instanceof TrainError ? problem.code : ''
  if (code.startsWith('DATASET_')) return 'dataset'
  return /^(?:REWARD|MODULE)_/.test(code) ? 'reward' : 'config'
}

/** Makes the starting model of a project without a model folder. A training makes it in its run. */
async function makeModel(plan: LocalPlan, { warmUp }: PlannedPolicy, directory: string, signal: AbortSignal): Promise<string> {
  const { simd, threads } = plan.config.engine
  await runWarmUp(warmUp as string, plan.configDirectory, { directory, seed: plan.seed, simd, threads, signal, onProgress() {} })
  return directory
}

function rewardNote({ rewardFunc }: TrainingDefinition): string {
  if (typeof rewardFunc === 'string') return `${rewardFunc} runs in a worker with limits of time and memory`
  return 'runs in this process: a reward that never yields cannot be stopped; give it by path (./reward.ts#name) for hard limits'
}

/** Throws POLICY_CONTEXT_OVERFLOW if a prompt of any dataset is too long. Resolves to the context of the model, in tokens. */
async function checkPrompts({ train, validation, test }: LocalPlan, { settings }: PlannedPolicy, directory: string): Promise<number> {
  const { contextLength } = await loadModelConfig(directory)
  const chat = await loadChatModel({ directory, templateArguments: settings.templateArguments })
  const tasks = [train, validation, test].flatMap((dataset) => dataset?.tasks ?? [])
  const long = findLongPrompts(tasks, { chat, contextLength })
  if (long) throw long.error
  return contextLength
}

/** Frozen models whose calls might cost money or add to their recorded answers. */
function modelsWithSideEffects({ config }: LocalPlan): string[] {
  return Object.entries(config.models).flatMap(([name, { mode }]) => (mode === 'replay' ? [] : [`models.${name} (${mode})`]))
}

const leftOut = (models: readonly string[]) =>
  `left out: it could cost money or add to recorded answers, since it may ask ${models.join(', ')}; with mode "replay" it is tried`

interface TriedRollout {
  readonly plan: LocalPlan
  readonly models: readonly string[]
  readonly parts: RolloutParts
  readonly path: string
  readonly task: TrainingTask
}

async function tryRollout({ plan, models, parts, path, task }: TriedRollout, signal: AbortSignal): Promise<Episode> {
  await using stack = new AsyncDisposableStack()
  const store = stack.adopt(await openRunStore({ path }), (each) => each.close())
  const { answers } = plan.train
  const stage = stack.adopt(await openStage({ models, plan, parts, store, answers, onEvent: () => {}, signal }), (each) => each.close())
  const { temperature, topP, topK, maxTokens } = plan.config.sampling
  const sampling = { temperature, topP, topK, maxTokens, stop: [], seed: plan.seed }
  const episode = await stage.runner.run(
    {
      version: 1,
      key: 'doctor',
      task,
      group: 'doctor',
      sample: 0,
      split: 'doctor',
      policy: stage.policy.engine.name,
      sampling,
      limits: {},
    },
    signal,
  )
  if (isReplayMissing(episode)) return episode
  const { error, trajectories } = episode
  const isUnanswered = error !== undefined && trajectories.every(({ turns }) => turns.length === 0)
  if (episode.stopReason === 'failed' || episode.stopReason === 'no-model-call' || isUnanswered)
    throw new Error(
      `one rollout on task "${task.id}" ended as ${episode.stopReason}: ${error?.message ?? 'the agent never called the model'}`,
    )
  return episode
}

const isReplayMissing = ({ error }: Episode) => error?.code === 'FROZEN_REPLAY_MISSING'

/**
 * Describes the outcome of the rollout. A missing recorded answer is no fault of the project, because the policy here differs from the one
 * that the answers were recorded for.
 */
function describeRollout(episode: Episode): string {
  return isReplayMissing(episode)
    ? `ended early, an answer is not recorded: ${episode.error?.message}\n${tokenReport(episode)}`
    : tokenReport(episode)
}

const counted = (count: number, one: string, many = `${one}s`): string => `${count} ${count === 1 ? one : many}`

/** Describes the sampled tokens of one episode, the structure of its turns, and the part that reaches a trainer. */
function tokenReport(episode: Episode): string {
  const all = episode.trajectories.flatMap((trajectory) => trajectory.turns)
  const turns = all.filter(({ branchReasons }) => !branchReasons.includes('frozen-model'))
  const frozen = all.length - turns.length
  const sampled = turns.reduce((sum, turn) => sum + turn.completionTokenIds.length, 0)
  const { samples } = toTrainingSamples(episode)
  const masked = samples.reduce((sum, { lossMask }) => sum + lossMask.reduce((total, bit) => total + bit, 0), 0)
  const branches = turns.filter(({ parent }) => parent === null).length
  const reasons = [
    ...new Set(turns.filter(({ parent, index }) => parent === null && index > 0).flatMap(({ branchReasons }) => branchReasons)),
  ]
  return [
    `${episode.stopReason}, reward ${episode.reward ?? 'not scored'}: ${counted(turns.length, 'turn')} in ${counted(branches, 'branch', 'branches')}${reasons.length > 0 ? ` (${reasons.join(', ')})` : ''}, ${counted(episode.toolCalls.length, 'tool call')}${frozen > 0 ? `, ${counted(frozen, 'call')} to frozen models` : ''}`,
    `${counted(sampled, 'token')} sampled, ${masked} with loss mask 1 in ${counted(samples.length, 'training sample')}`,
  ].join('\n')
}
