import type { ProgramJail } from '@aworld-train/core'

/** Settings of `createEnvironment`. */
export interface EnvironmentOptions {
  /** Folder that relative commands, script arguments and `cwd` are resolved from. Default: the process's own. */
  readonly baseDirectory?: string | undefined
  /** Values for `${NAME}` in the configuration. Default: `process.env`. */
  readonly variables?: Readonly<Record<string, string | undefined>> | undefined
  /** Longest accepted tool result in bytes of text. Default: 1 MiB. */
  readonly maxResultBytes?: number | undefined
  /** Deadline of a call in milliseconds if the server's configuration names none. Default 120,000. */
  readonly callTimeoutMs?: number | undefined
  /** Deadline for starting a server and listing its tools, in milliseconds. Default 30,000. */
  readonly startTimeoutMs?: number | undefined
  /**
   * How long a server may take before it is killed, in milliseconds: to leave when it is closed, and to answer anything when a call hung
   * or was cancelled. Default 2,000.
   */
  readonly graceMs?: number | undefined
  /** Sets of fresh processes kept ready for each agent whose stdio servers are not stateless. Default 1. */
  readonly warmProcesses?: number | undefined
  /** Globs of the files that are read of a workspace before it closes, such as `out/**`. Default: none are read. */
  readonly collect?: readonly string[] | null | undefined
  /** Opens the jail for servers whose configuration has `sandbox`. Called when the first of them starts; without it they do not start. */
  readonly openProgramJail?: (() => Promise<ProgramJail>) | undefined
}

/** The settings with every default filled in. */
export interface ResolvedOptions {
  readonly baseDirectory: string
  readonly variables: Readonly<Record<string, string | undefined>>
  readonly maxResultBytes: number
  readonly callTimeoutMs: number
  readonly startTimeoutMs: number
  readonly graceMs: number
  readonly warmProcesses: number
  /** `null` if no files are read. */
  readonly collect: readonly string[] | null
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
    collect: options.collect?.length ? options.collect : null,
    openProgramJail: options.openProgramJail ?? null,
  }
}
