import { posix } from 'node:path'
import { PassThrough } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { deserialize, serialize } from 'node:v8'
import {
  type CommandResult,
  chooseFiles,
  readBytes,
  type Sandbox,
  type Shell,
  ToolError,
  TrainError,
  type Workspace,
  type WorkspaceOptions,
} from '@aworld-train/core'

/** A sandbox whose workspaces are maps of files, and whose shells know `cd FOLDER`, `pwd` and `sleep`. */
export interface MemorySandbox extends Sandbox {
  /** Open workspaces, in the order of their opening. */
  readonly open: readonly MemoryWorkspace[]
  /** Makes later workspaces fail with `error`; null ends that. */
  refuse(error: Error | null): void
}

export interface MemoryWorkspace extends Workspace {
  readonly options: WorkspaceOptions
  readonly files: ReadonlyMap<string, Buffer>
  readonly shells: number
  /** Ends it as if its jail had died. */
  die(): void
}

export function memorySandbox(): MemorySandbox {
  const open: MemoryWorkspace[] = []
  let refusal: Error | null = null
  return {
    tier: 'simulated',
    notices: ['Files are in memory.'],
    open,
    refuse(error) {
      refusal = error
    },
    async workspace(options) {
      if (refusal) throw refusal
      const workspace = memoryWorkspace(options, () => open.splice(open.indexOf(workspace), 1))
      open.push(workspace)
      return workspace
    },
    async close() {
      await Promise.all([...open].map((workspace) => workspace.close()))
    },
  }
}

function memoryWorkspace(options: WorkspaceOptions, onClose: () => void): MemoryWorkspace {
  const files = new Map<string, Buffer>()
  let shells = 0
  let closed = false
  let dead = false
  const check = () => {
    if (dead) throw new TrainError('TOOL_SERVER_DIED', 'The jail died.')
    if (closed) throw new ToolError('The workspace is closed.')
  }
  const place = (path: string): string => {
    check()
    const absolute = posix.resolve('/workspace', path)
    if (absolute.startsWith('/workspace/')) return absolute
    throw new ToolError(`"${path}" is outside of /workspace.`)
  }
  const result = (output: string): CommandResult => ({ exitCode: 0, output, omittedBytes: 0, timedOut: false })

  function createShell(): Shell {
    shells++
    let folder = '/workspace'
    return {
      async execute(command, _timeoutMs, signal) {
        check()
        if (command === 'sleep') return await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
        if (command.startsWith('cd ')) folder = posix.resolve(folder, command.slice(3))
        return result(command === 'pwd' ? folder : '')
      },
      async close() {},
    }
  }

  return {
    options,
    files,
    get shells() {
      return shells
    },
    die() {
      dead = true
    },
    async run({ command }) {
      check()
      return result(command.join(' '))
    },
    async program({ command }) {
      throw new ToolError(`${command[0]} does not run in memory.`)
    },
    async listen(port) {
      throw new ToolError(`Port ${port} cannot be opened in memory.`)
    },
    async shell() {
      check()
      return createShell()
    },
    async put(path, bytes) {
      files.set(place(path), Buffer.from(await readBytes(bytes)))
    },
    async get(path) {
      const bytes = files.get(place(path))
      if (!bytes) throw new ToolError(`There is no file "${path}".`)
      return bytes
    },
    async putAll(written) {
      for (const { path, bytes } of written) files.set(place(path), Buffer.from(bytes))
    },
    async collect(patterns) {
      const entries = Array.from(files, ([path, { length }]) => ({
        path: path.slice('/workspace/'.length),
        kind: 'file' as const,
        bytes: length,
      }))
      return chooseFiles(
        entries.map((entry) => ({ ...entry, executable: false })),
        patterns,
      ).map(({ path }) => ({
        path,
        executable: false,
        bytes: files.get(place(path))!,
      }))
    },
    async pack(output) {
      check()
      output.end(serialize([...files]))
    },
    async unpack(fill) {
      check()
      const input = new PassThrough()
      const [packed] = await Promise.all([buffer(input), fill(input)])
      for (const [path, bytes] of deserialize(packed)) files.set(path, Buffer.from(bytes))
    },
    async close() {
      if (!closed) onClose()
      closed = true
    },
  }
}
