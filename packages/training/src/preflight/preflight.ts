import {
  type AgentDeclaration,
  type AgentProgram,
  type Environment,
  type Reward,
  scoringContext,
  TrainError,
  type TrainingTask,
  toTrainError,
} from '@aworld-train/core'
import { requireKnownAgents } from '@aworld-train/rollout'
import type { LoadedDataset } from '../dataset/dataset-types.ts'
import type { RewardSource } from '../reward/create-reward.ts'
import { collectProblems } from './collect-problems.ts'
import { referenceEpisode } from './reference-episode.ts'

export interface PreflightPlan {
  readonly program: Pick<AgentProgram, 'agents'>
  readonly rewardSource: RewardSource | null
  readonly train: Pick<LoadedDataset, 'tasks' | 'answers'>
  /** Names of the frozen models, which a reward may ask. */
  readonly frozenModels: readonly string[]
}

export interface PreflightOptions {
  readonly signal: AbortSignal
  /** Called once if a check takes long. */
  readonly onWait: (message: string) => void
}

/** How long the other checks may continue after one has failed, so that their problems are reported too. */
const othersMs = 2_000
const waitMs = 5_000

/**
 * Leases the tools of every agent once, and scores one answer with a reward given by path. Throws every problem at once. A server that is
 * slow to start is waited for until its own deadline, unless another check has failed already.
 */
export async function preflight(
  { environment, reward }: { readonly environment: Environment; readonly reward: Reward | null },
  { program, rewardSource, train, frozenModels }: PreflightPlan,
  { signal, onWait }: PreflightOptions,
): Promise<void> {
  const pending = new Set<string>()
  const others = new AbortController()
  const together = AbortSignal.any([signal, others.signal])
  let giveUp: NodeJS.Timeout | undefined
  const wait = setTimeout(() => onWait(`Waiting for ${[...pending].join(', ')}.`), waitMs)

  async function check(name: string, work: () => Promise<unknown>): Promise<void> {
    pending.add(name)
    try {
      await work()
    } catch (error) {
      giveUp ??= setTimeout(() => others.abort(), othersMs)
      throw error
    } finally {
      pending.delete(name)
    }
  }

  const checks = program.agents.flatMap((agent) =>
    agent.mcpConfig ? [check(`the tools of agent "${agent.name}"`, () => listTools(environment, agent, together))] : [],
  )
  const task = answeredTask(train)
  if (typeof rewardSource === 'string' && reward && task)
    checks.push(
      check(`the reward ${rewardSource}`, () =>
        scoreReference({ reward, source: rewardSource, task, train, program, frozenModels }, together),
      ),
    )
  const settled = await Promise.allSettled(checks)
  clearTimeout(wait)
  clearTimeout(giveUp)
  signal.throwIfAborted()

  const problems = collectProblems()
  const messages = new Set<string>()
  for (const result of settled) {
    if (result.status === 'fulfilled' || result.reason === others.signal.reason) continue
    const problem = toTrainError(result.reason, 'ENVIRONMENT_START_FAILED')
    // A problem of a server that several agents share is reported once.
    if (!messages.has(problem.message)) problems.add(problem)
    messages.add(problem.message)
  }
  problems.throwAny()
}

/** Names of an agent's tools, from a lease that is then given back. */
export async function listTools(environment: Environment, agent: AgentDeclaration, signal: AbortSignal): Promise<string[]> {
  const { name, mcpConfig, mcpServers, hiddenTools } = agent
  if (!mcpConfig) return []
  const lease = environment.lease({ rollout: 'preflight', attempt: 0, sample: 0, task: { id: 'preflight' } })
  try {
    const tools = await lease.tools({ agent: name, mcpConfig, mcpServers, hiddenTools }, signal)
    return (await tools.list()).map((tool) => tool.name)
  } finally {
    await lease.close()
  }
}

/** The first task whose answer is known. */
export function answeredTask({ tasks, answers }: PreflightPlan['train']): TrainingTask | undefined {
  return tasks.find(({ id }) => {
    const groundTruth = answers.get(id)?.groundTruth
    return groundTruth !== null && groundTruth !== undefined
  })
}

export interface ScoreReferenceInput {
  readonly reward: Reward
  readonly source: RewardSource
  readonly task: TrainingTask
  readonly train: PreflightPlan['train']
  readonly program: PreflightPlan['program']
  readonly frozenModels: readonly string[]
}

/**
 * Scores an agent that gives the known answer at once; `null` if the reward abstains. No frozen model is asked: a reward that wants one ends
 * there. An error of the reward names its file, its function and the task.
 */
export async function scoreReference(
  { reward, source, task, train, program, frozenModels }: ScoreReferenceInput,
  signal: AbortSignal,
): Promise<number | null | 'asks a model' | 'compares a group'> {
  if (reward.scoreGroup) return 'compares a group'
  const answer = train.answers.get(task.id) ?? { version: 1, taskId: task.id, groundTruth: null }
  try {
    const output = await reward.score({ task, episode: referenceEpisode(task, answer, program.agents), answer }, scoringContext(signal))
    requireKnownAgents(
      output,
      program.agents.map((agent) => agent.name),
      reward.name,
    )
    return output.reward
  } catch (error) {
    if (signal.aborted) throw signal.reason
    const { code, message, details } = toTrainError(error, 'REWARD_FAILED')
    if (code === 'CONFIG_INVALID' && frozenModels.includes(details?.['model'] as string)) return 'asks a model'
    const name = typeof source === 'string' ? source : `"${reward.name}"`
    throw new TrainError(code, `The reward ${name} cannot score the known answer of task "${task.id}": ${message}`, { cause: error })
  }
}
