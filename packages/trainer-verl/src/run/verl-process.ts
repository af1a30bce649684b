import type { TrainError } from '@aworld-train/protocol'

export interface LaunchVerlOptions {
  /** Absolute path of the Python that has verl. */
  readonly python: string
  /** `key=value` of Hydra, in the order in which they are given to `verl.trainer.main_ppo`. */
  readonly overrides: readonly string[]
  /** The run directory; verl works in it, `verl.log` is written to it. */
  readonly path: string
  /** Name of the run on the channel. */
  readonly run: string
  /** Unique id of this start of verl; every process of it carries it in its environment. */
  readonly incarnation: string
  /** Where the rollout service listens (`ws://…/v1/channel`), and the file that holds its token. */
  readonly channel: { readonly url: string; readonly tokenFile: string }
  /** Further variables, which win over the others. */
  readonly environment?: Readonly<Record<string, string>> | undefined
  /** The environment of which variables that verl, Ray, CUDA and the like read are passed on. Default `process.env`. */
  readonly inherited?: Readonly<Record<string, string | undefined>> | undefined
  /** One line of verl's console, without colours. */
  readonly onLine?: ((line: string) => void) | undefined
  /** One line of verl's file logger: a training step, or a validation by itself. */
  readonly onMetrics?: ((line: MetricsLine) => void) | undefined
  /** Program and arguments in place of `python -m verl.trainer.main_ppo …overrides`. */
  readonly command?: readonly string[] | undefined
  readonly deadlines?: Partial<StopDeadlines> | undefined
  /** Folder of the bridge's Python package. */
  readonly bridgeDirectory: string
  /** Folder that Ray keeps its session in, and verl its temporary files; its path is short, since sockets lie below it. Made and removed here; `null` joins the cluster of RAY_ADDRESS. */
  readonly rayDirectory: string | null
}

/** What `verl.utils.tracking.FileLogger` (0.9.1) writes; a number that is not finite is `null`. */
export interface MetricsLine {
  readonly step: number
  readonly data: Readonly<Record<string, unknown>>
}

/** How long verl may take after each signal before the next, in milliseconds. */
export interface StopDeadlines {
  /** After SIGINT: Ray ends its workers. Default 15,000. */
  readonly interruptMs: number
  /** After SIGTERM. Default 10,000. */
  readonly terminateMs: number
  /** For processes that verl leaves, such as Ray's, to end by themselves; then they get SIGTERM and SIGKILL. Default 5,000. */
  readonly graceMs: number
}

export interface VerlExit {
  /** Exit code of verl, `null` where a signal ended it. */
  readonly code: number | null
  readonly signal: string | null
  /** Whether `stop` was called. */
  readonly stopped: boolean
  /** The failure that the console shows; `null` after a good end or a stop. */
  readonly error: TrainError | null
}

export interface VerlProcess {
  readonly incarnation: string
  /** The guard, leader of the process group. */
  readonly pid: number
  /** Resolves when verl, Ray and all that they started have ended, and everything that they wrote was handed over. */
  readonly ended: Promise<VerlExit>
  /** SIGINT, then SIGTERM, then SIGKILL for what is left; the same promise as `ended`. */
  stop(): Promise<VerlExit>
}
