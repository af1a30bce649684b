import type { Episode, RolloutRequest, RunEvent, Turn } from '@aworld-train/protocol'

export interface RolloutRecord {
  readonly request: RolloutRequest
  readonly status: 'queued' | 'running' | 'done'
  readonly attempt: number
}

/**
 * A run directory with one owner. Every write resolves when it is durable;
 * a write of an attempt that is no longer current is refused.
 */
export interface RunStore {
  readonly path: string
  /** Idempotent by key: a finished rollout gives its episode, an unfinished one a new attempt. */
  begin(request: RolloutRequest): Promise<{ attempt: number; episode: Episode | null }>
  appendTurn(rollout: string, attempt: number, agent: string, turn: Turn): Promise<void>
  /** Ends the rollout. A second result for the same key is refused. */
  finish(episode: Episode): Promise<void>
  /** Marks a step as trained with these rollouts, together with its checkpoint; all or nothing. */
  commitStep(step: StepRecord): Promise<void>
  steps(): readonly StepRecord[]
  /** What was asked for under a key; `null` for one that never began. A store without it cannot say. */
  rollout?(key: string): RolloutRecord | null
  episode(rollout: string): Episode | null
  episodes(filter?: { split?: string | undefined }): Iterable<Episode>
  appendEvent(event: RunEvent): void
  getState(key: string): unknown
  setState(key: string, value: unknown): Promise<void>
  close(): Promise<void>
}

export interface StepRecord {
  readonly step: number
  readonly weightVersion: number
  /** Rollout keys whose samples were trained in this step. */
  readonly rollouts: readonly string[]
  readonly metrics: Readonly<Record<string, number>>
  /** Path inside the run, `null` for a step without checkpoint. */
  readonly checkpoint: string | null
}
