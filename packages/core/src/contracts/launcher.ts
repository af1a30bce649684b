/** The part of a configuration's `executor` that the engine which starts workers reads. */
export interface LauncherSettings {
  /** Address of the engine, such as the URL of a cluster; `null` for the engine's own default. */
  readonly address: string | null
  readonly workerNum: number
  /** Attempts that each worker runs at once. */
  readonly slots: number
  /** Needs of each worker on its machine, in the engine's own words. */
  readonly resources: Readonly<Record<string, unknown>>
  /** Variables that each worker gets beside those of its machine. */
  readonly env: Readonly<Record<string, string>>
  /** Options that only the engine understands. */
  readonly options: Readonly<Record<string, unknown>>
  /** Folder that paths of the configuration are relative to. */
  readonly directory: string
}

/** The command that starts one worker. */
export interface LaunchCommand {
  /** Runs the worker on a machine that has the same files under the same paths. */
  readonly command: readonly string[]
  /** All variables that it needs beside those of its machine: those of the configuration, and the token. */
  readonly env: Readonly<Record<string, string>>
  /**
   * The same for `aworld-train worker` on machines with other files: address of the coordinator, its token, and the agent by an absolute
   * path.
   */
  readonly url: string
  readonly token: string | null
  readonly agent: string
}

/** The workers that a launcher starts for one coordinator. */
export interface WorkerLaunch extends LauncherSettings {
  /** The command of the worker with this name. Called only after `plan`, which is called before the coordinator listens. */
  worker(name: string): LaunchCommand
  readonly onWarning: (message: string) => void
  /**
   * Called when the process of a worker has ended, before it is started again, so that its attempts need not wait for it. Without this call
   * the coordinator finds out later. Returns whether the worker had connected; such a worker can run, and may have been ended by the code
   * that it ran.
   */
  readonly onExit: (name: string) => boolean | undefined
  /** Called when workers cannot be started, because attempts would wait for ever. */
  readonly onFailed: (error: Error) => void
}

export interface LaunchedWorker {
  readonly name: string
  readonly state: 'starting' | 'running' | 'ended'
  readonly restarts: number
}

/** Starts workers, and restarts those that end unasked. It leaves their placement to the system that it uses. */
export interface Launcher {
  /** Sentences about what `start` will do. Rejects with CONFIG_INVALID if it cannot. */
  plan(): Promise<readonly string[]>
  start(): Promise<void>
  /** Starts more workers, or makes the last ones finish their work and leave. */
  scale(workerNum: number): Promise<void>
  status(): Promise<readonly LaunchedWorker[]>
  /** Ends all workers and resolves when they have ended. */
  stop(): Promise<void>
}

/** An engine that starts workers, by its name in `executor.engineName`. */
export interface LauncherEngine {
  readonly name: string
  /** Whether its workers may be on machines that cannot reach this machine's loopback. */
  isElsewhere(settings: LauncherSettings): boolean
  create(launch: WorkerLaunch): Launcher
}
