import type { ChildProcess } from 'node:child_process'

/** How commands are kept from the machine: by the kernel's namespaces, or by a simulation that runs no native program. */
export type SandboxTier = 'bubblewrap' | 'simulated'

/** Bounds of one workspace. */
export interface WorkspaceLimits {
  /** Memory of all its processes together, in bytes. */
  readonly memoryBytes: number
  /** Size of its files, in bytes. */
  readonly diskBytes: number
  /** Processes and threads at one time. */
  readonly processes: number
  /** CPU time of one command, in seconds. */
  readonly cpuSeconds: number
  /** What is kept of a command's output, in bytes: the first half and the last. */
  readonly outputBytes: number
}

export interface WorkspaceOptions {
  /** The tier's own limits where absent. */
  readonly limits?: Partial<WorkspaceLimits> | undefined
}

/** Where commands of rollouts run. What runs there reaches neither the network nor the machine's files, environment or processes. */
export interface Sandbox {
  readonly tier: SandboxTier
  /** Why this tier, and which limits could not be set: one sentence each. */
  readonly notices: readonly string[]
  workspace(options: WorkspaceOptions, signal: AbortSignal): Promise<Workspace>
  /** Ends every workspace that is still open. */
  close(): Promise<void>
}

/**
 * Files and processes of one rollout, below `/workspace` as its commands see it. Paths are relative to it, or absolute as a command sees them.
 * A file that is missing, no file, too large or outside rejects with a ToolError; a jail that died with TOOL_SERVER_DIED, for good.
 */
export interface Workspace {
  /** Runs a program once, in `/workspace`, without a shell. */
  run(program: Program, signal: AbortSignal): Promise<CommandResult>
  /** Opens a bash that keeps its folder, variables and functions from command to command. */
  shell(signal: AbortSignal): Promise<Shell>
  /** Writes a file whole, or leaves what was there; folders on its way are made. An error that `bytes` ends with is the answer's. */
  put(path: string, bytes: Uint8Array | ByteStream, signal: AbortSignal): Promise<void>
  /** Reads a file of at most `maxBytes`. */
  get(path: string, maxBytes: number, signal: AbortSignal): Promise<Buffer>
  /** Ends its processes and removes its files; resolves when both are gone. */
  close(): Promise<void>
}

/** Bytes that are written as they come. */
export interface ByteStream {
  /** How many come, unless they end with an error. */
  readonly size: number
  readonly chunks: AsyncIterable<Uint8Array>
}

export interface Program {
  /** `python3`, `node`, `bash` or another program of the tier, and its arguments. */
  readonly command: readonly [string, ...string[]]
  readonly stdin?: string | undefined
  readonly timeoutMs: number
}

/** One persistent bash. Commands run one after the other. */
export interface Shell {
  /** Runs a command; one that runs longer is ended, with all it started, and the shell goes on. Aborting ends it too. */
  execute(command: string, timeoutMs: number, signal: AbortSignal): Promise<CommandResult>
  close(): Promise<void>
}

export interface CommandResult {
  /** As bash counts: 128 and the signal's number where a signal ended it, 124 where the time ran out. */
  readonly exitCode: number
  /** Standard output and error in the order of their coming, as UTF-8; what is not UTF-8 is replaced by U+FFFD. */
  readonly output: string
  /** Bytes left out of the middle of `output`, 0 when it is whole. */
  readonly omittedBytes: number
  readonly timedOut: boolean
}

/** A program that runs as long as its rollout, such as a tool server of the user's own. */
export interface JailedProgram {
  readonly command: readonly [string, ...string[]]
  /** Its variables, beside `PATH`, `HOME`, `USER`, `LANG` and `TERM`. */
  readonly env: Readonly<Record<string, string>>
  /** The folder that it works in and may write, at its path on the machine. `null`: `/tmp`, in memory and of this program alone. */
  readonly directory: string | null
  /** Files and folders that it reads, at their paths on the machine, beside what it is made of itself. */
  readonly readable: readonly string[]
}

/** Runs programs that reach neither the network nor the machine's files, environment or processes, but for what each of them names. */
export interface ProgramJail {
  /** Which limits could not be set: one sentence each. */
  readonly notices: readonly string[]
  /** Starts a program as the leader of a process group, with pipes for its input and output. Ending the group ends all that it started. */
  spawn(program: JailedProgram): ChildProcess
  /** Every program must have been ended; resolves when nothing is left of them. */
  close(): Promise<void>
}

/** Runs code that reads foreign bytes (documents, pages) where it can harm nobody: no network, no files, bounded time and memory. */
export interface ParserJail {
  readonly notices: readonly string[]
  /**
   * Calls the function that `module` exports as default, `(bytes: Buffer, options: JSON) => JSON | Promise<JSON>`, in a process of its own,
   * and resolves with what it returns. An error it throws, the time limit and the memory limit reject with a ToolError.
   */
  parse(module: URL, bytes: Uint8Array, options: unknown, signal: AbortSignal): Promise<unknown>
  close(): Promise<void>
}
