import type { ChildProcess } from 'node:child_process'
import type { Socket } from 'node:net'
import type { Duplex, Readable, Writable } from 'node:stream'

/** How commands are separated from the machine: by the kernel's namespaces, or by a simulation that runs no native program. */
export type SandboxTier = 'bubblewrap' | 'simulated'

/** Bounds of one workspace. */
export interface WorkspaceLimits {
  /** Memory of all its processes together, in bytes. */
  readonly memoryBytes: number
  /** Size of its files, in bytes. */
  readonly diskBytes: number
  /** Most processes and threads at one time. */
  readonly processes: number
  /** CPU time of one command, in seconds. */
  readonly cpuSeconds: number
  /** Bytes that are kept of a command's output, half of them from each end. */
  readonly outputBytes: number
}

export interface WorkspaceOptions {
  /** Default: the tier's own limits. */
  readonly limits?: Partial<WorkspaceLimits> | undefined
  /** Variables of every program beside the tier's own. */
  readonly env?: Readonly<Record<string, string>> | undefined
}

/**
 * The place where commands of rollouts run. They reach the network only by a port that `listen` opens, and none of the machine's files,
 * environment or processes.
 */
export interface Sandbox {
  readonly tier: SandboxTier
  /** Sentences about why this tier was chosen, and which limits could not be set. */
  readonly notices: readonly string[]
  workspace(options: WorkspaceOptions, signal: AbortSignal): Promise<Workspace>
  /** Ends every workspace that is still open. */
  close(): Promise<void>
}

/**
 * Files and processes of one rollout, below `/workspace` as its commands see it. Paths are relative to it, or absolute as a command sees
 * them. A file that is missing, is no regular file, is too large or is outside rejects with a ToolError; a jail that died rejects with
 * TOOL_SERVER_DIED from then on.
 */
export interface Workspace {
  /** Runs a program once, in `/workspace`, without a shell. */
  run(program: Program, signal: AbortSignal): Promise<CommandResult>
  /** Opens a bash that keeps its folder, variables and functions between commands. */
  shell(signal: AbortSignal): Promise<Shell>
  /**
   * Starts a program that runs until it ends, is ended, or the workspace closes, in `/workspace`, without a shell. Aborting the signal ends
   * it too. Rejects with a ToolError where no program of the machine runs, and if it could not be started.
   */
  program(program: LongProgram, signal: AbortSignal): Promise<RunningProgram>
  /**
   * Listens on a port of 127.0.0.1 as its programs see it, which nothing else of the machine reaches, until the signal aborts or the
   * workspace closes. Both end the connections too. An error that `onConnection` throws ends the workspace. Rejects with a ToolError if the
   * port is taken, and where no program of the machine runs.
   */
  listen(port: number, onConnection: (connection: Socket) => void, signal: AbortSignal): Promise<void>
  /** Writes a file whole or not at all, and makes the folders on its way. Rejects with the error that `bytes` ends with. */
  put(path: string, bytes: Uint8Array | ByteStream, signal: AbortSignal): Promise<void>
  /** Reads a file of at most `maxBytes`. */
  get(path: string, maxBytes: number, signal: AbortSignal): Promise<Buffer>
  /** Writes files with the folders on their way. A path that has a file gets the new one. */
  putAll(files: readonly WorkspaceFile[], signal: AbortSignal): Promise<void>
  /**
   * Reads the regular files that fit one of the patterns, which are globs relative to `/workspace`. All else that runs in the workspace is
   * paused meanwhile. Rejects with FILES_REFUSED, and reads none, if one is a link, a pipe or a device, or if they exceed `collectLimits`.
   */
  collect(patterns: readonly string[], signal: AbortSignal): Promise<readonly WorkspaceFile[]>
  /**
   * Writes all its files, with modes and links, to the input of `unpack` of another workspace of the sandbox. All else that runs in the
   * workspace is paused meanwhile.
   */
  pack(output: Writable, signal: AbortSignal): Promise<void>
  /** Makes the files that `fill` packs into its argument. */
  unpack(fill: (input: Writable) => Promise<void>, signal: AbortSignal): Promise<void>
  /** Ends its processes, removes its files, and resolves when both are gone. */
  close(): Promise<void>
}

/** A regular file, by its path below the workspace. */
export interface WorkspaceFile {
  readonly path: string
  readonly executable: boolean
  readonly bytes: Uint8Array
}

/** Bytes that are written as they come. */
export interface ByteStream {
  /** Number of bytes, unless they end with an error. */
  readonly size: number
  readonly chunks: AsyncIterable<Uint8Array>
}

export interface Program {
  /** `python3`, `node`, `bash` or another program of the tier, and its arguments. */
  readonly command: readonly [string, ...string[]]
  readonly stdin?: string | undefined
  readonly timeoutMs: number
  /** Whether it can only read the files of the workspace, and writes to `/tmp` alone. */
  readonly readOnly?: boolean | undefined
}

/**
 * What a program may do. `command`: as every command, no UNIX sockets, no namespaces of its own, bounded time on the processor. `graphical`,
 * for browsers and displays: UNIX sockets, namespaces for a sandbox of its own, 4,096 open files, no bound on its time, a home
 * of its own that no command sees, and for all of them together 1,024 processes and threads and 1 GiB of memory beside those of the workspace.
 */
export type ProgramProfile = 'command' | 'graphical'

/** A program that runs beside the commands of a workspace, such as a browser. */
export interface LongProgram {
  readonly command: readonly [string, ...string[]]
  readonly profile: ProgramProfile
  /** Its variables beside those of every command. */
  readonly env?: Readonly<Record<string, string>> | undefined
}

export interface RunningProgram {
  readonly stdin: Writable
  readonly stdout: Readable
  /** The end of its standard error, at most 4,000 characters. */
  errors(): string
  /** Resolves when it has ended, to its exit code as bash counts it. */
  readonly ended: Promise<number>
  /**
   * Connects to a UNIX socket that it listens on, by the socket's name in `/dev/shm`, which is the program's own. Rejects with a ToolError if
   * there is none.
   */
  connect(name: string, signal: AbortSignal): Promise<Duplex>
  /** Ends it with everything that it started, and resolves when nothing of it is left. */
  close(): Promise<void>
}

/** One persistent bash. Commands run one after the other. */
export interface Shell {
  /** Runs a command. One that runs longer is ended with everything it started, and the shell continues. Aborting also ends it. */
  execute(command: string, timeoutMs: number, signal: AbortSignal): Promise<CommandResult>
  close(): Promise<void>
}

export interface CommandResult {
  /** Exit code as bash counts it: 128 and the signal's number if a signal ended it, 124 if the time ran out. */
  readonly exitCode: number
  /** Standard output and error in the order of arrival, as UTF-8. Invalid UTF-8 becomes U+FFFD. */
  readonly output: string
  /** Bytes left out of the middle of `output`; 0 if it is whole. */
  readonly omittedBytes: number
  readonly timedOut: boolean
}

/** A program that runs as long as its rollout, such as a tool server of the user's own. */
export interface JailedProgram {
  readonly command: readonly [string, ...string[]]
  /** Its variables beside `PATH`, `HOME`, `USER`, `LANG` and `TERM`. */
  readonly env: Readonly<Record<string, string>>
  /** The folder that it works in and may write, by its path on the machine. `null`: `/tmp`, in memory and for this program alone. */
  readonly directory: string | null
  /** Files and folders that it may read, by their paths on the machine, in addition to those of the program itself. */
  readonly readable: readonly string[]
}

/** Runs programs that reach neither the network nor the machine's files, environment or processes, except those that each program names. */
export interface ProgramJail {
  /** Sentences about the limits that could not be set. */
  readonly notices: readonly string[]
  /**
   * Starts a program as the leader of a process group, with pipes for its input and output. Ending the group ends everything that it
   * started.
   */
  spawn(program: JailedProgram): ChildProcess
  /** Resolves when nothing of the programs is left. Every program must have been ended before. */
  close(): Promise<void>
}

/** Runs code that reads foreign bytes (documents, pages) in harmless conditions: no network, no files, bounded time and memory. */
export interface ParserJail {
  readonly notices: readonly string[]
  /**
   * Calls the default export of `module`, `(bytes: Buffer, options: JSON) => JSON | Promise<JSON>`, in a process of its own, and resolves
   * to its result. An error that it throws, the time limit and the memory limit reject with a ToolError.
   */
  parse(module: URL, bytes: Uint8Array, options: unknown, signal: AbortSignal): Promise<unknown>
  /**
   * Does the same for a module with native addons or threads. Only namespaces of the kernel hold those; where there are none, it rejects
   * with a ToolError that says why.
   */
  parseNative(module: URL, bytes: Uint8Array, options: unknown, signal: AbortSignal): Promise<unknown>
  close(): Promise<void>
}
