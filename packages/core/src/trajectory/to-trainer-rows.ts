import { roleReward } from '../advantage/role-reward.ts'
import { addCount, type TokenCounts } from '../ledger/token-counts.ts'
import type { RowSelection } from '../protocol/channel.ts'
import type { Episode, ErrorRecord } from '../protocol/episode.ts'
import { TrainError } from '../protocol/errors.ts'
import type { UntrainedReason } from '../protocol/token-ledger.ts'
import type { TrainingSample } from '../protocol/training-sample.ts'
import type { Turn } from '../protocol/turn.ts'
import { isUnscored, toEndedRollout } from './failures.ts'
import { answeringTrajectory } from './invocations.ts'
import { type BranchCandidate, type SampleAssembly, toTrainingSamples, type UntrainedTurns } from './to-training-samples.ts'
import { type UntrainedEpisodeOptions, untrainedEpisode } from './untrained-episode.ts'

export interface TrainerRowOptions {
  readonly rows: RowSelection
  /** Longest prompt and response of a row that is trained, in tokens. */
  readonly limits: { readonly maxPromptTokens: number; readonly maxResponseTokens: number }
  /**
   * Whether the rows are shown and scored, but never trained. Any length and any sampling is accepted then, and a failed episode keeps its
   * rows.
   */
  readonly evaluation: boolean
  /** `native`: the trainer scores, so an episode without a reward has not failed. */
  readonly reward: 'service' | 'native'
  /** An episode that ended at a limit is trained with its reward (default), or fails. */
  readonly incompleteEpisodes?: UntrainedEpisodeOptions['incompleteEpisodes']
  /** Share of an agent's own reward in the reward of its rows, 0 to 1. Default 0. An evaluation has the reward of the rollout. */
  readonly ownReward?: number | undefined
}

/**
 * What a trainer client, a trainer at the far end of the channel, gets of one branch: a TrainingSample cut into prompt and response, whose
 * advantage that trainer computes. The response begins with the first sampled token of the branch.
 */
export interface TrainerRow extends Readonly<Pick<TrainingSample, 'agent' | 'trajectory' | 'tokenIds' | 'lossMask' | 'rolloutLogprobs'>> {
  readonly promptLength: number
  /** Lowest and highest version of the weights that may have sampled its mask-1 tokens. */
  readonly minVersion: number
  readonly maxVersion: number
  /** Turn indices of the branch, from the root on. */
  readonly turns: readonly number[]
  /** `null` if it is not scored here. */
  readonly reward: number | null
}

/** Rows of one episode, and an account of each sampled token that has mask 1 in none of them. */
export interface TrainerRowAssembly {
  /** `failed`: none of it may be trained. */
  readonly status: 'done' | 'failed'
  /** The primary row is the last: that of the invocation whose answer is the program's. */
  readonly rows: readonly TrainerRow[]
  readonly omitted: TokenCounts
  /** The turns that `omitted` counts. */
  readonly omittedTurns: readonly UntrainedTurns[]
  /** Tokens sampled in this episode. */
  readonly sampled: number
  readonly error: ErrorRecord | null
}

const lengthOf = ({ path }: BranchCandidate) => path.at(-1)!.promptTokenIds.length + path.at(-1)!.completionTokenIds.length

/** The branch with the greatest measure; among equal ones the latest. */
function greatest(branches: readonly BranchCandidate[], measure: (branch: BranchCandidate) => number): BranchCandidate | undefined {
  return branches.reduce<BranchCandidate | undefined>(
    (best, branch) => (best === undefined || measure(branch) >= measure(best) ? branch : best),
    undefined,
  )
}

const lastEnded = (branches: readonly BranchCandidate[]) => greatest(branches, ({ path }) => path.at(-1)!.timing.endedAt)

/** Of the last of these invocations, in the order of the episode, the branch that ended last. */
const lastOf = (branches: readonly BranchCandidate[]) =>
  lastEnded(branches.filter(({ trajectory }) => trajectory === branches.at(-1)?.trajectory))

/** The branch of an agent's last invocation. */
const branchOf = (role: string, branches: readonly BranchCandidate[]) =>
  lastOf(branches.filter(({ trajectory }) => trajectory.agent === role))

/**
 * The branch of the invocation that answered. Where its model is not trained, that of the last invocation that no tool call asked for, else of
 * the last one.
 */
function answeringBranch(branches: readonly BranchCandidate[], { trajectories, answer }: Episode): BranchCandidate | undefined {
  const id = answeringTrajectory(trajectories, answer)?.id
  const members = branches.filter(({ trajectory }) => trajectory.startedBy.every(({ toolCall }) => toolCall === null))
  return lastEnded(branches.filter(({ trajectory }) => trajectory.id === id)) ?? lastOf(members) ?? lastOf(branches)
}

const selections: Readonly<
  Record<Extract<RowSelection, string>, (branches: readonly BranchCandidate[], episode: Episode) => BranchCandidate | undefined | null>
> = {
  all: () => null,
  last: answeringBranch,
  longest: (branches) => greatest(branches, lengthOf),
}

const holdsTokens = ({ path }: BranchCandidate) => path.some(({ completionTokenIds }) => completionTokenIds.length > 0)

/**
 * The rows that a trainer client gets of an episode: one a branch, of all agents that are trained (`all`), that of the branch that
 * gave the answer (`last`) or has the most tokens (`longest`), or that of the last branch of one agent (`{ role }`). A branch that is too long is left
 * out whole: its reward is for all of it.
 */
export function toTrainerRows(episode: Episode, options: TrainerRowOptions): TrainerRowAssembly {
  const { evaluation, reward, limits } = options
  const incompleteEpisodes = evaluation ? 'train' : options.incompleteEpisodes
  const { rows: selection } = options
  const unscored = reward === 'native' ? 'keep' : 'exclude'
  const { limitedSideBySide: _, ...evaluated } = episode
  const reason = untrainedEpisode(evaluation ? evaluated : episode, { unscored, incompleteEpisodes })
  let primary: BranchCandidate | undefined
  let assembly: SampleAssembly
  try {
    assembly = toTrainingSamples(
      evaluation ? (reason === null ? evaluated : { ...evaluated, stopReason: 'completed', reward: 0 }) : episode,
      {
        unscored,
        incompleteEpisodes,
        ...(evaluation ? { truncatedSampling: 'accept' } : limits),
        select(branches) {
          const sampled = branches.filter(holdsTokens)
          const selected = typeof selection === 'string' ? selections[selection](sampled, episode) : branchOf(selection.role, sampled)
          // An evaluation scores every rollout, also one without the agent whose rows are trained.
          const one = selected === undefined && evaluation ? answeringBranch(sampled, episode) : selected
          primary = one ?? answeringBranch(sampled, episode)
          return one === null ? sampled : sampled.filter((branch) => branch === one)
        },
      },
    )
  } catch (cause) {
    if (!(cause instanceof TrainError)) throw cause
    return { status: 'failed', rows: [], ...everything(episode, 'failed-episode'), error: cause.toRecord() }
  }
  const { samples, untrained, untrainedTurns, sampled } = assembly
  const trained = samples.filter(({ lossMask }) => lossMask.includes(1))
  const rows = trained.map((sample): TrainerRow & { readonly isPrimary: boolean } => {
    const { agent, trajectory, tokenIds, lossMask, rolloutLogprobs, provenance } = sample
    const turns = turnsOf(episode, trajectory, provenance.turns)
    return {
      agent,
      trajectory,
      tokenIds,
      lossMask,
      rolloutLogprobs,
      promptLength: turns[0]!.promptTokenIds.length,
      ...versionsOf(turns.filter(({ promptTokenIds }) => lossMask[promptTokenIds.length] === 1)),
      turns: provenance.turns,
      reward: roleReward(episode, agent, evaluation ? 0 : options.ownReward),
      isPrimary: primary?.trajectory.id === trajectory && primary.path.at(-1)!.index === provenance.turns.at(-1),
    }
  })
  const ordered = [...rows.filter(({ isPrimary }) => !isPrimary), ...rows.filter(({ isPrimary }) => isPrimary)]
  const withoutRows = reason === null && ordered.length === 0
  return {
    status: reason === null && !withoutRows ? 'done' : 'failed',
    rows: ordered.map(({ isPrimary: _, ...row }) => row),
    omitted: untrained,
    omittedTurns: untrainedTurns,
    sampled,
    error: withoutRows ? noRows(episode, untrained, options) : reason === null ? null : failureOf(episode),
  }
}

function everything(episode: Episode, reason: UntrainedReason): Pick<TrainerRowAssembly, 'omitted' | 'omittedTurns' | 'sampled'> {
  const omittedTurns = episode.trajectories.map(({ id, agent, policy, turns }) => ({
    agent,
    trajectory: id,
    policy,
    reason,
    turns: turns.map(({ index }) => index),
    tokens: turns.reduce((sum, { completionTokenIds }) => sum + completionTokenIds.length, 0),
  }))
  const sampled = omittedTurns.reduce((sum, { tokens }) => sum + tokens, 0)
  const omitted: TokenCounts = {}
  addCount(omitted, reason, sampled)
  return { omitted, omittedTurns, sampled }
}

function turnsOf({ trajectories, attempt }: Episode, id: string, indices: readonly number[]): Turn[] {
  const indexSet = new Set(indices)
  const turns = trajectories.find((trajectory) => trajectory.id === id)!.turns
  return turns.filter((turn) => turn.attempt === attempt && indexSet.has(turn.index))
}

function versionsOf(turns: readonly Turn[]): { minVersion: number; maxVersion: number } {
  const versions = turns.flatMap(({ weightVersions, mixedVersions }) => [
    ...weightVersions.map(({ version }) => version),
    ...(mixedVersions ? [mixedVersions.lowest, mixedVersions.highest] : []),
  ])
  return versions.length === 0 ? { minVersion: 0, maxVersion: 0 } : { minVersion: Math.min(...versions), maxVersion: Math.max(...versions) }
}

function failureOf(episode: Episode): ErrorRecord {
  const { rollout, stopReason, error } = episode
  if (isUnscored(toEndedRollout(episode)))
    return new TrainError('ROLLOUT_UNSCORED', `The reward abstained from rollout "${rollout}"; nothing of it is trained.`).toRecord()
  return (
    error ?? new TrainError('ROLLOUT_WITHOUT_ROWS', `Rollout "${rollout}" ended as ${stopReason}; nothing of it is trained.`).toRecord()
  )
}

function noRows({ rollout }: Episode, omitted: TokenCounts, { limits, rows }: TrainerRowOptions): ErrorRecord {
  const counts = Object.entries(omitted).map(([reason, tokens]) => `${tokens} tokens ${reason}`)
  const message = `Rollout "${rollout}" gives no row${typeof rows === 'string' ? '' : ` of agent "${rows.role}"`} (${counts.join(', ') || 'nothing was sampled'}); a row may have ${limits.maxPromptTokens} tokens of prompt and ${limits.maxResponseTokens} of response.`
  return new TrainError('ROLLOUT_WITHOUT_ROWS', message, { details: { omitted } }).toRecord()
}
