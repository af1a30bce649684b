import { type Episode, type EpisodeReader, isInfrastructureFailure, type RolloutRequest } from '@aworld-train/core'
import type { TokenAccounts } from './token-accounts.ts'

/** The rollouts that a process started, and which of them are in its accounts. */
export class StartedRollouts {
  readonly #store: Pick<EpisodeReader, 'episode'>
  readonly #tokens: Pick<TokenAccounts, 'addRecorded' | 'addEpisode'>
  /** Keys of rollouts that are not counted. */
  readonly #uncounted = new Set<string>()
  /** Keys of rollouts whose episodes an earlier process sampled. */
  readonly #earlier = new Set<string>()

  constructor(store: Pick<EpisodeReader, 'episode'>, tokens: Pick<TokenAccounts, 'addRecorded' | 'addEpisode'>) {
    this.#store = store
    this.#tokens = tokens
  }

  /** Whether no rollout is left that is not counted. */
  get allCounted(): boolean {
    return this.#uncounted.size === 0
  }

  /** Whether an earlier process of the run sampled the episode of a started rollout. */
  isOfEarlierProcess(key: string): boolean {
    return this.#earlier.has(key)
  }

  /** Notes requests that are about to run. */
  add(requests: readonly RolloutRequest[]): void {
    for (const { key } of requests) {
      const episode = this.#store.episode(key)
      if (episode !== null && !isInfrastructureFailure(episode)) this.#earlier.add(key)
      this.#uncounted.add(key)
    }
  }

  /** Counts what an earlier process sampled, once. The sampler of this process has counted the rest. */
  count(episodes: readonly Episode[]): void {
    for (const episode of episodes)
      if (this.#uncounted.delete(episode.rollout) && this.#earlier.has(episode.rollout)) this.#tokens.addRecorded(episode)
  }

  /** Counts as in flight what has ended and was not counted, and forgets the rest. */
  countInFlight(): void {
    const episodes = Array.from(this.#uncounted, (key) => this.#store.episode(key)).filter((episode) => episode !== null)
    this.count(episodes)
    for (const episode of episodes) this.#tokens.addEpisode(episode, 'in-flight')
    this.#uncounted.clear()
  }
}
