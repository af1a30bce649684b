import {
  type PolicyGateway,
  rewardCost,
  type ScoringContext,
  type SessionRequest,
  scoringContext,
  TrainError,
  type Trajectory,
  toTrainError,
} from '@aworld-train/core'

/** The frozen models that rewards may ask, through a gateway that serves them. */
export interface RewardModels {
  readonly gateway: Pick<PolicyGateway, 'open'>
  readonly names: readonly string[]
  /** Most that the calls of one scoring may cost, in US dollars; `null` sets no limit. */
  readonly maxCost: number | null
}

/** What a scoring scores. `rollout` names the session, and `taskId` and `sample` find its recorded answers. */
export type ScoringPlace = Pick<SessionRequest, 'rollout' | 'attempt' | 'taskId' | 'sample' | 'traceHeaders'> & {
  /** Name of the reward, for messages. */
  readonly reward: string
}

/** The end of a scoring, and what the models were asked in it: an invocation `reward:NAME` for each that answered. */
export interface Scored<T> {
  readonly result: { readonly value: T } | { readonly error: TrainError }
  readonly trajectories: readonly Trajectory[]
}

/**
 * Scores in a session of the gateway of its own. A scoring that failed is made once more if the process of the reward died, or if a model
 * was asked, whose answer may be another. A call of a model that failed fails the scoring, whatever the reward makes of it.
 */
export async function askModels<T>(
  models: RewardModels | null,
  place: ScoringPlace,
  signal: AbortSignal,
  score: (context: ScoringContext) => Promise<T>,
): Promise<Scored<T>> {
  const first = await scoreOnce(models, place, signal, score)
  if ('value' in first.result || signal.aborted || !isWorthAnother(first.result.error, first.usesModels)) return first
  const left = models && {
    ...models,
    maxCost: models.maxCost === null ? null : Math.max(0, models.maxCost - rewardCost({ rewardTrajectories: first.trajectories })),
  }
  const second = await scoreOnce(left, place, signal, score)
  return { result: second.result, trajectories: joined(first.trajectories, second.trajectories) }
}

const isWorthAnother = ({ code, retryable }: TrainError, usesModels: boolean) => retryable || (usesModels && code !== 'AGENT_LIMIT')

async function scoreOnce<T>(
  models: RewardModels | null,
  { reward, ...place }: ScoringPlace,
  signal: AbortSignal,
  score: (context: ScoringContext) => Promise<T>,
): Promise<Scored<T> & { readonly usesModels: boolean }> {
  const session = models && models.names.length > 0 ? openSession(models, place) : null
  const endpoints = session ? Object.fromEntries(models!.names.map((name) => [name, session.endpoint(agentOf(name))])) : {}
  const settled = await score(scoringContext(signal, endpoints)).then(
    (value) => ({ value }),
    (error: unknown) => ({ error: toTrainError(error, 'REWARD_FAILED') }),
  )
  const failure = session?.failure() ?? null
  const trajectories = ((await session?.close()) ?? []).filter(({ turns }) => turns.length > 0)
  const result = failure ? { error: reasonOf(failure, reward) } : settled
  return { result, trajectories, usesModels: failure !== null || trajectories.length > 0 }
}

const agentOf = (model: string) => `reward:${model}`

function openSession({ gateway, names, maxCost }: RewardModels, place: Omit<ScoringPlace, 'reward'>) {
  return gateway.open({
    ...place,
    rollout: `${place.rollout}/reward`,
    policy: names[0]!,
    sampling: { temperature: 1, topP: 1, topK: 0, maxTokens: 4096, stop: [], seed: 0 },
    agents: names.map((name) => ({ name: agentOf(name), trainable: false, model: name })),
    ...(maxCost !== null && { maxCost }),
  })
}

function reasonOf(failure: Error, reward: string): TrainError {
  const error = toTrainError(failure, 'REWARD_FAILED')
  if (error.code !== 'AGENT_LIMIT') return error
  const message = `The models that reward "${reward}" asks cost more than one scoring may; raise reward.maxCost, or let it ask less.`
  return new TrainError('AGENT_LIMIT', message, { cause: failure, details: { ...error.details } })
}

/** The invocations of both scorings, with the turns of the second behind those of the first. */
function joined(first: readonly Trajectory[], second: readonly Trajectory[]): Trajectory[] {
  const ids = new Set([...first, ...second].map(({ id }) => id))
  return Array.from(ids, (id) => {
    const parts = [first, second].flatMap((all) => all.filter((each) => each.id === id))
    const turns = parts.flatMap((each) => each.turns).map((turn, index) => ({ ...turn, index }))
    return { ...parts[0]!, turns }
  })
}
