import type { ProgramJail } from '@aworld-train/core'

/** Settings of `createEnvironment`. */
export interface EnvironmentOptions {
  /** Folder that relative commands, script arguments and `cwd` are resolved from; the process's own by default. */
  readonly baseDirectory?: string | undefined
  /** Values for `${NAME}` in the configuration; `process.env` by default. */
  readonly variables?: Readonly<Record<string, string | undefined>> | undefined
  /** Longest accepted tool result in bytes of text; 1 MiB by default. */
  readonly maxResultBytes?: number | undefined
  /** Deadline of a call where the server's configuration names none, in milliseconds; 120,000 by default. */
  readonly callTimeoutMs?: number | undefined
  /** Deadline for starting a server and listing its tools, in milliseconds; 30,000 by default. */
  readonly startTimeoutMs?: number | undefined
  /** How long a server may take before it is killed, in milliseconds: to leave when it is closed, to answer anything when a call hung or was cancelled; 2,000 by default. */
  readonly graceMs?: number | undefined
  /** Sets of fresh processes kept ready per agent whose stdio servers are not stateless; 1 by default. */
  readonly warmProcesses?: number | undefined
  /** Opens the jail of the servers whose configuration has `sandbox`; called when the first of them starts. Without it they do not start. */
  readonly openProgramJail?: (() => Promise<ProgramJail>) | undefined
}

/** The same with every default filled in. */
export interface ResolvedOptions {
  readonly baseDirectory: string
  readonly variables: Readonly<Record<string, string | undefined>>
  readonly maxResultBytes: number
  readonly callTimeoutMs: number
  readonly startTimeoutMs: number
  readonly graceMs: number
  readonly warmProcesses: number
  readonly openProgramJail: (() => Promise<ProgramJail>) | null
}

/** Fills in the defaults. */
export function resolveOptions(options: EnvironmentOptions): ResolvedOptions {
  return {
    baseDirectory: options.baseDirectory ?? process.cwd(),
    variables: options.variables ?? process.env,
    maxResultBytes: options.maxResultBytes ?? 2 ** 20,
    callTimeoutMs: options.callTimeoutMs ?? 120_000,
    startTimeoutMs: options.startTimeoutMs ?? 30_000,
    graceMs: options.graceMs ?? 2_000,
    warmProcesses: options.warmProcesses ?? 1,
    openProgramJail: options.openProgramJail ?? null,
  }
}
