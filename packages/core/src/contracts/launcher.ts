/** The workers that a launcher is to start for one coordinator. */
export interface WorkerLaunch {
  readonly workerNum: number
  /** Attempts that each runs at once. */
  readonly slots: number
  /** What runs the worker of this name on a machine that has the same files: a command, and variables that it needs beside those of the machine. They hold the token of the coordinator. */
  worker(name: string): { readonly command: readonly string[]; readonly env: Readonly<Record<string, string>> }
  readonly onWarning: (message: string) => void
  /** Called when workers cannot be started: attempts would wait for ever. */
  readonly onFailed: (error: Error) => void
}

export interface LaunchedWorker {
  readonly name: string
  readonly state: 'starting' | 'running' | 'ended'
  readonly restarts: number
}

/** Starts workers, and starts them again when they end before they are told to. Placing them is the work of whoever it asks. */
export interface Launcher {
  /** Sentences that say what `start` will do. Rejects with CONFIG_INVALID where it cannot. */
  plan(): Promise<readonly string[]>
  start(): Promise<void>
  /** Starts more workers, or has the last ones finish what they have and leave. */
  scale(workerNum: number): Promise<void>
  status(): Promise<readonly LaunchedWorker[]>
  /** Ends all workers; resolves when they have ended. */
  stop(): Promise<void>
}
