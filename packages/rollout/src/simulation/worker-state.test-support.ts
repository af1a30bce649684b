import type { AttemptName, StopReason } from '@aworld-train/protocol'

/** An attempt that a worker has, until it is told that it may forget it. */
export interface Job extends AttemptName {
  turnsLeft: number
  stopReason: StopReason | null
  isCancelled: boolean
}

/** A process that runs agents, and its connection. */
export interface Worker {
  readonly name: string
  isUp: boolean
  isGone: boolean
  isDraining: boolean
  /** Counts starts of the process and connections; 0 is no connection. */
  start: number
  /** This start of the process, or what it is since it gave up what it had. */
  incarnation: string
  connection: number
  stoppedUntil: number
  heardAt: number
  /** When the last message of the connection arrives, to there and to here. */
  arrival: { up: number; down: number }
  jobs: Map<string, Job>
}
