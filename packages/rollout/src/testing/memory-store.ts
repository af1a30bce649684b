import {
  type AttemptWorker,
  type Episode,
  type ErrorRecord,
  isInfrastructureFailure,
  type RolloutRequest,
  type RunEvent,
  type RunStore,
  type StepRecord,
  type SubmissionStore,
  TrainError,
  type Turn,
} from '@aworld-train/core'

export interface MemoryStore extends RunStore, SubmissionStore {
  readonly turns: readonly { readonly rollout: string; readonly attempt: number; readonly agent: string; readonly turn: Turn }[]
  /** Ended attempts, whether superseded or the last of their rollout, with the workers that ran them. */
  readonly ends: readonly { readonly rollout: string; readonly worker: AttemptWorker | null; readonly error: ErrorRecord | null }[]
  /** How often an episode was read. */
  readonly reads: number
  /** Makes the write of this name reject with `error`. */
  failWith(write: 'keepSubmission' | 'appendTurn' | 'finish', error: Error): void
}

const conflict = (message: string) => new TrainError('STORE_CONFLICT', message)

/** A RunStore in memory, with the same fences. */
export function memoryStore(): MemoryStore {
  const requests = new Map<string, RolloutRequest>()
  const attempts = new Map<string, number>()
  const episodes = new Map<string, Episode>()
  const cancelled = new Set<string>()
  const submitted = new Set<string>()
  const reasons = new Map<string, ErrorRecord>()
  const turns = new Map<string, { rollout: string; attempt: number; agent: string; turn: Turn }>()
  const steps: StepRecord[] = []
  const events: RunEvent[] = []
  const ends: MemoryStore['ends'][number][] = []
  const state = new Map<string, unknown>()
  const failures = new Map<string, Error>()
  let reads = 0

  function check(write: string, rollout: string, attempt: number): void {
    const failure = failures.get(write)
    if (failure) throw failure
    if (episodes.has(rollout)) throw conflict(`${rollout} has its result`)
    if (attempts.get(rollout) !== attempt) throw conflict(`attempt ${attempt} of ${rollout} is not current`)
  }

  return {
    path: 'memory',
    get turns() {
      return [...turns.values()]
    },
    ends,
    get reads() {
      return reads
    },
    failWith: (write, error) => void failures.set(write, error),
    async queue(request) {
      requests.set(request.key, request)
    },
    async keepSubmission(request) {
      reasons.delete(request.key)
      const failure = failures.get('keepSubmission')
      if (failure) throw failure
      requests.set(request.key, request)
      submitted.add(request.key)
    },
    async releaseSubmission(rollout, error) {
      submitted.delete(rollout)
      reasons.set(rollout, error)
    },
    async begin(request, before) {
      const { key } = request
      if (before) ends.push({ rollout: key, worker: before.worker, error: before.error })
      requests.set(key, request)
      const kept = episodes.get(key)
      const episode = kept && !isInfrastructureFailure(kept) ? kept : null
      if (!episode) episodes.delete(key)
      const last = attempts.get(key)
      const attempt = episode ? episode.attempt : last === undefined ? 0 : last + 1
      attempts.set(key, attempt)
      cancelled.delete(key)
      reasons.delete(key)
      return { attempt, episode }
    },
    async appendTurn(rollout, attempt, agent, turn) {
      check('appendTurn', rollout, attempt)
      turns.set(`${rollout} ${attempt} ${agent} ${turn.index}`, { rollout, attempt, agent, turn })
    },
    async keepScores(scores) {
      for (const score of scores) episodes.set(score.rollout, { ...episodes.get(score.rollout)!, ...score, groupScored: true })
    },
    async finish(episode, worker = null) {
      check('finish', episode.rollout, episode.attempt)
      ends.push({ rollout: episode.rollout, worker, error: null })
      episodes.set(episode.rollout, episode)
      submitted.delete(episode.rollout)
    },
    async cancel(rollout, attempt) {
      if ((attempts.get(rollout) ?? null) === attempt && !episodes.has(rollout)) cancelled.add(rollout)
    },
    commitStep: async (step) => void steps.push(step),
    steps: () => steps,
    rollout(key) {
      const request = requests.get(key)
      if (!request) return null
      const attempt = attempts.get(key)
      const open = cancelled.has(key) ? 'cancelled' : attempt === undefined ? 'queued' : 'running'
      return { request, status: episodes.has(key) ? 'done' : open, attempt: attempt ?? 0, error: reasons.get(key) ?? null }
    },
    episode(rollout) {
      reads++
      return episodes.get(rollout) ?? null
    },
    episodes: ({ split } = {}) => [...episodes.values()].filter((episode) => split === undefined || episode.split === split),
    submissions: () => [...submitted].map((key) => requests.get(key) as RolloutRequest),
    appendEvent: (event) => void events.push(event),
    getState: (key) => state.get(key),
    setState: async (key, value) => void state.set(key, value),
    close: async () => {},
  }
}
