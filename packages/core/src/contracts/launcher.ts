/** What `executor` of a configuration says to the engine that starts workers. */
export interface LauncherSettings {
  /** Where the engine is reached, such as the URL of a cluster; `null` for the engine's own default. */
  readonly address: string | null
  readonly workerNum: number
  /** Attempts that each worker runs at once. */
  readonly slots: number
  /** What each worker needs of its machine, in the engine's own words. */
  readonly resources: Readonly<Record<string, unknown>>
  /** Variables that each worker gets beside those of its machine. */
  readonly env: Readonly<Record<string, string>>
  /** What the engine alone understands. */
  readonly options: Readonly<Record<string, unknown>>
  /** Folder that paths of the configuration are relative to. */
  readonly directory: string
}

/** How one worker is started. */
export interface LaunchCommand {
  /** Runs it on a machine that has the same files under the same paths. */
  readonly command: readonly string[]
  /** All variables that it needs beside those of its machine: those of the configuration, and the token. */
  readonly env: Readonly<Record<string, string>>
  /** The same for `aworld-train worker`, where files lie elsewhere: address of the coordinator, its token, and the agent by an absolute path. */
  readonly url: string
  readonly token: string | null
  readonly agent: string
}

/** The workers that a launcher is to start for one coordinator. */
export interface WorkerLaunch extends LauncherSettings {
  /** How the worker of this name is started; only after `plan`, which is called before the coordinator listens. */
  worker(name: string): LaunchCommand
  readonly onWarning: (message: string) => void
  /** Called when the process of a worker has ended, before it is started again: what it had need not wait for it. Who is never told finds out later. Returns whether the worker had connected: it can run, and may have been ended by what it ran. */
  readonly onExit: (name: string) => boolean | undefined
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

/** An engine that starts workers, by the name that `executor.engineName` has. */
export interface LauncherEngine {
  readonly name: string
  /** Whether its workers may be on machines that do not reach this machine's loopback. */
  isElsewhere(settings: LauncherSettings): boolean
  create(launch: WorkerLaunch): Launcher
}
