import { roleReward } from '../advantage/role-reward.ts'
import { addCount, type TokenCounts } from '../ledger/token-counts.ts'
import type { Episode, Trajectory } from '../protocol/episode.ts'
import { TrainError } from '../protocol/errors.ts'
import type { UntrainedReason } from '../protocol/token-ledger.ts'
import type { WeightVersionSpan } from '../protocol/tokens.ts'
import type { TrainingSample } from '../protocol/training-sample.ts'
import type { Turn } from '../protocol/turn.ts'
import { inStableOrder, toBranches } from './branches.ts'
import { type UntrainedEpisodeOptions, untrainedEpisode } from './untrained-episode.ts'

/** A path of turns from the root on that would be a sample. */
export interface BranchCandidate {
  readonly trajectory: Trajectory
  readonly path: readonly Turn[]
}

export interface TrainingSampleOptions extends UntrainedEpisodeOptions {
  /** Only trajectories of this policy are trained. Default: all trainable ones. */
  readonly policy?: string | undefined
  /** Most tokens of a sample, prompt included. A longer branch is left out as `too-long`. */
  readonly maxSampleTokens?: number | undefined
  /** Most tokens before the first sampled one. A branch with more is left out as `too-long`. */
  readonly maxPromptTokens?: number | undefined
  /** Most tokens from the first sampled one on. A branch with more is left out as `too-long`. */
  readonly maxResponseTokens?: number | undefined
  /** Chooses among the branches that could be samples. The others are left out as `unselected-by-trainer`. Default: all. */
  readonly select?: ((branches: readonly BranchCandidate[]) => readonly BranchCandidate[]) | undefined
  /** A branch that was sampled with more than one weight version is trained or left out. */
  readonly mixedWeights?: 'train' | 'exclude' | undefined
  /** Turns sampled with top-p or top-k are refused (default), or trained on the logprobs before truncation. */
  readonly truncatedSampling?: 'refuse' | 'accept' | undefined
  /** Share of an agent's own reward in the reward of its samples, 0 to 1. Default 0. */
  readonly ownReward?: number | undefined
}

/** Turns of an invocation that no sample trains, all for one reason. */
export interface UntrainedTurns {
  readonly agent: string
  /** Id of the invocation. */
  readonly trajectory: string
  readonly policy: string
  /** Indices of those turns that have tokens. */
  readonly turns: readonly number[]
  readonly tokens: number
  readonly reason: UntrainedReason
}

/** Samples of one episode, and an account of each sampled token that none of them trains. */
export interface SampleAssembly {
  readonly samples: TrainingSample[]
  readonly untrained: TokenCounts
  /** The turns that `untrained` counts. */
  readonly untrainedTurns: readonly UntrainedTurns[]
  /** Tokens sampled in this episode: those with mask 1 and those in `untrained`. */
  readonly sampled: number
}

/**
 * The training samples of an episode, one a branch: prompt and completions along the path, with mask 1 on tokens of the policy. A turn that
 * branches share has mask 1 in the first sample that trains it.
 */
export function toTrainingSamples(episode: Episode, options: TrainingSampleOptions = {}): SampleAssembly {
  const left: UntrainedTurns[] = []
  const wholeEpisode = untrainedEpisode(episode, options)
  const kept: Trajectory[] = []
  let sampled = 0
  for (const trajectory of episode.trajectories) {
    const tokens = trajectory.turns.reduce((sum, turn) => sum + turn.completionTokenIds.length, 0)
    sampled += tokens
    const reason =
      trajectory.trainable && (options.policy === undefined || trajectory.policy === options.policy) ? wholeEpisode : 'frozen-policy'
    if (reason) leave(left, trajectory, trajectory.turns, reason)
    else kept.push(trajectory)
  }
  const samples = assemble(episode, kept, options, left)
  const untrained: TokenCounts = {}
  for (const { reason, tokens } of left) addCount(untrained, reason, tokens)
  return { samples, untrained, untrainedTurns: left, sampled }
}

function leave(left: UntrainedTurns[], { id, agent, policy }: Trajectory, all: readonly Turn[], reason: UntrainedReason): void {
  const turns = all.filter(({ completionTokenIds }) => completionTokenIds.length > 0)
  const tokens = turns.reduce((sum, { completionTokenIds }) => sum + completionTokenIds.length, 0)
  if (tokens > 0) left.push({ agent, trajectory: id, policy, turns: turns.map(({ index }) => index), tokens, reason })
}

function assemble(
  episode: Episode,
  trajectories: readonly Trajectory[],
  options: TrainingSampleOptions,
  left: UntrainedTurns[],
): TrainingSample[] {
  const reasons = new Map<Turn, UntrainedReason>()
  const candidates: BranchCandidate[] = []
  for (const trajectory of trajectories) {
    for (const turn of trajectory.turns) reasons.set(turn, untrainedTurn(episode, turn))
    const turns = trajectory.turns.filter((turn) => turn.attempt === episode.attempt && turn.model === undefined)
    const beside = sideCalls(turns)
    for (const turn of beside) reasons.set(turn, 'side-call')
    for (const path of inStableOrder(toBranches(usedTurns(turns).filter((turn) => !beside.has(turn))))) {
      const reason = untrainedBranch(path, options)
      if (reason) for (const turn of path) reasons.set(turn, reason)
      else candidates.push({ trajectory, path })
    }
  }
  const selected = new Set(options.select?.(candidates) ?? candidates)
  const samples: TrainingSample[] = []
  const trained = new Set<Turn>()
  for (const candidate of candidates) {
    const { trajectory, path } = candidate
    if (selected.has(candidate)) {
      samples.push(toSample(episode, trajectory, path, trained, options))
      for (const turn of path) trained.add(turn)
    } else for (const turn of path) reasons.set(turn, 'unselected-by-trainer')
  }
  for (const trajectory of trajectories) {
    const turns = Map.groupBy(
      trajectory.turns.filter((turn) => !trained.has(turn)),
      (turn) => reasons.get(turn)!,
    )
    for (const [reason, ofReason] of turns) leave(left, trajectory, ofReason, reason)
  }
  return samples
}

/** Reason why no sample trains a turn. A turn that names a model was answered by that model, not by the policy. */
function untrainedTurn({ attempt }: Episode, turn: Turn): UntrainedReason {
  if (turn.attempt !== attempt) return 'superseded-attempt'
  return turn.model === undefined ? 'abandoned-turn' : 'frozen-policy'
}

/** Calls that the run leaves out, and calls without tools of an agent that has tools. */
function sideCalls(turns: readonly Turn[]): ReadonlySet<Turn> {
  const hasTools = turns.some(({ callKind }) => callKind === 'with-tools')
  return new Set(turns.filter(({ callKind }) => callKind === 'left-out' || (hasTools && callKind === 'without-tools')))
}

/** Turns that a client received, or that such a turn continues. Nobody acted on the others. */
function usedTurns(turns: readonly Turn[]): Turn[] {
  const byIndex = new Map(turns.map((turn) => [turn.index, turn]))
  const used = new Set<number>()
  for (const delivered of turns) {
    let turn: Turn | undefined = delivered.delivered === 'delivered' ? delivered : undefined
    while (turn && !used.has(turn.index)) {
      used.add(turn.index)
      turn = turn.parent === null ? undefined : byIndex.get(turn.parent)
    }
  }
  return turns.filter((turn) => used.has(turn.index))
}

function untrainedBranch(path: readonly Turn[], options: TrainingSampleOptions): UntrainedReason | null {
  const unbounded = Number.POSITIVE_INFINITY
  const { maxSampleTokens = unbounded, maxPromptTokens = unbounded, maxResponseTokens = unbounded, mixedWeights = 'train' } = options
  const leaf = path.at(-1)!
  const length = leaf.promptTokenIds.length + leaf.completionTokenIds.length
  const promptLength = path[0]!.promptTokenIds.length
  if (length > maxSampleTokens || promptLength > maxPromptTokens || length - promptLength > maxResponseTokens) return 'too-long'
  if (mixedWeights === 'exclude') {
    const versions = new Set(path.flatMap((turn) => turn.weightVersions.map((span) => span.version)))
    if (versions.size > 1 || path.some((turn) => turn.mixedVersions !== undefined)) return 'mixed-weights'
  }
  return null
}

function toSample(
  episode: Episode,
  trajectory: Trajectory,
  path: readonly Turn[],
  trained: ReadonlySet<Turn>,
  options: TrainingSampleOptions,
): TrainingSample {
  const leaf = path.at(-1)!
  const length = leaf.promptTokenIds.length + leaf.completionTokenIds.length
  const tokenIds = new Int32Array(length)
  tokenIds.set(leaf.promptTokenIds)
  tokenIds.set(leaf.completionTokenIds, leaf.promptTokenIds.length)
  const lossMask = new Uint8Array(length)
  const rolloutLogprobs = new Float32Array(length)
  const weightVersions: WeightVersionSpan[] = []
  for (const turn of path) {
    const start = turn.promptTokenIds.length
    requireTrainable(episode, turn, options)
    requireExtension(episode, turn, tokenIds)
    rolloutLogprobs.set(turn.rolloutLogprobs, start)
    if (!trained.has(turn)) lossMask.fill(1, start, start + turn.completionTokenIds.length)
    for (const { fromToken, version } of turn.weightVersions) weightVersions.push({ fromToken: start + fromToken, version })
  }
  return {
    version: 2,
    tokenIds,
    lossMask,
    rolloutLogprobs,
    weightVersions,
    // Absent only if `unscored` is `keep`; a later scorer sets it then.
    reward: roleReward(episode, trajectory.agent, options.ownReward) ?? 0,
    advantage: null,
    group: episode.group,
    agent: trajectory.agent,
    trajectory: trajectory.id,
    policy: trajectory.policy,
    provenance: {
      rollout: episode.rollout,
      attempt: episode.attempt,
      taskId: episode.taskId,
      sample: episode.sample,
      turns: path.map((turn) => turn.index),
    },
  }
}

/** Throws for tokens whose logprobs are not those of the distribution that a loss recomputes. */
function requireTrainable(
  { rollout }: Episode,
  { index, trajectory, capture, sampling }: Turn,
  { truncatedSampling = 'refuse' }: TrainingSampleOptions,
): void {
  const where = `Turn ${index} of agent "${trajectory}" in rollout "${rollout}"`
  if (capture.tokens === 'none') {
    throw new TrainError(
      'CONFIG_INVALID',
      `${where} was recorded as text only and cannot be trained; route the agent through a token engine.`,
    )
  }
  if (capture.logprobs !== 'temperature') {
    throw new TrainError(
      'CONFIG_INVALID',
      `${where} has "${capture.logprobs}" logprobs; training needs those of logits / temperature, without response_format, a forced tool_choice or a grammar.`,
    )
  }
  if (truncatedSampling === 'refuse' && (sampling.topP < 1 || sampling.topK > 0)) {
    throw new TrainError(
      'CONFIG_INVALID',
      `${where} was sampled with top-p ${sampling.topP} and top-k ${sampling.topK}; train with topP 1 and topK 0.`,
    )
  }
}

/** Checks that the prompts of continuing turns contain a turn's completion, id by id. */
function requireExtension(episode: Episode, turn: Turn, tokenIds: Int32Array): void {
  const start = turn.promptTokenIds.length
  const { completionTokenIds, rolloutLogprobs } = turn
  const broken = (what: string) =>
    new RangeError(`Turn ${turn.index} of agent "${turn.trajectory}" in rollout "${episode.rollout}" ${what}; the record is corrupt.`)
  if (completionTokenIds.length !== rolloutLogprobs.length) throw broken('has completions and logprobs of different length')
  for (let i = 0; i < completionTokenIds.length; i++) {
    if (tokenIds[start + i] !== completionTokenIds[i]) throw broken('is not part of the prompt of the turn that continues it')
  }
}
