import { posix } from 'node:path'
import { chooseFiles, errorMessage, type FileEntry, ToolError, type WorkspaceFile } from '@aworld-train/core'
import { type FileContent, InMemoryFs } from 'just-bash'
import { BoundedOutput } from '../bounded-output.ts'
import type { PackedEntry } from './messages.ts'
import { isStopped } from './stop-signal.ts'

const root = '/workspace'

interface CommandOutput {
  readonly output: BoundedOutput
  readonly stop: () => Int32Array | undefined
}

/** Files of a workspace in memory, and outputs of its commands, which are files that keep only their beginning and their end. */
export class WorkspaceFiles extends InMemoryFs {
  readonly #outputs = new Map<string, CommandOutput>()
  readonly #outputBytes: number
  #nextOutput = 0
  /** While set, commands cannot change files of the workspace. */
  isReadOnly = false

  constructor(limits: { readonly diskBytes: number; readonly outputBytes: number }) {
    super(undefined, { maxTotalBytes: limits.diskBytes })
    this.#outputBytes = limits.outputBytes
    for (const folder of [root, '/tmp', '/usr/bin', '/bin', '/dev']) this.mkdirSync(folder, { recursive: true })
  }

  /** Text written after `stop` is the simulation's remark on the stop, and is left out. */
  openOutput(stop: CommandOutput['stop']): { readonly path: string; readonly output: BoundedOutput } {
    const path = `/dev/output${++this.#nextOutput}`
    const output = new BoundedOutput(this.#outputBytes)
    this.#outputs.set(path, { output, stop })
    return { path, output }
  }

  closeOutput(path: string): void {
    this.#outputs.delete(path)
  }

  override async appendFile(...[path, content, options]: Parameters<InMemoryFs['appendFile']>): Promise<void> {
    const file = this.#outputs.get(path)
    if (path === '/dev/null') return
    if (!file) {
      await this.#checkWrite(path)
      return super.appendFile(path, content, options)
    }
    if (!isStopped(file.stop())) file.output.add(toBytes(content, typeof options === 'string' ? options : options?.encoding))
  }

  override async writeFile(...[path, content, options]: Parameters<InMemoryFs['writeFile']>): Promise<void> {
    if (path === '/dev/null') return
    await this.#checkWrite(path)
    await super.writeFile(path, content, options)
  }

  override async mkdir(...[path, options]: Parameters<InMemoryFs['mkdir']>): Promise<void> {
    await this.#checkWrite(path)
    await super.mkdir(path, options)
  }

  override async rm(...[path, options]: Parameters<InMemoryFs['rm']>): Promise<void> {
    await this.#checkWrite(path)
    await super.rm(path, options)
  }

  override async cp(...[source, target, options]: Parameters<InMemoryFs['cp']>): Promise<void> {
    await this.#checkWrite(target)
    await super.cp(source, target, options)
  }

  override async mv(source: string, target: string): Promise<void> {
    await this.#checkWrite(source)
    await this.#checkWrite(target)
    await super.mv(source, target)
  }

  override async symlink(target: string, path: string): Promise<void> {
    await this.#checkWrite(path)
    await super.symlink(target, path)
  }

  override async link(source: string, path: string): Promise<void> {
    await this.#checkWrite(source)
    await this.#checkWrite(path)
    await super.link(source, path)
  }

  override async chmod(path: string, mode: number): Promise<void> {
    await this.#checkWrite(path)
    await super.chmod(path, mode)
  }

  /** Rejects if a path leads into the workspace while that is read-only. */
  async #checkWrite(path: string): Promise<void> {
    if (!this.isReadOnly) return
    const folder = await this.realpath(posix.dirname(path)).catch(() => posix.dirname(path))
    const real = await this.realpath(path).catch(() => posix.join(folder, posix.basename(path)))
    if (real === root || isInside(real) || isInside(`${folder}/`)) throw new Error(`EROFS: read-only file system, '${path}'`)
  }

  async collect(patterns: readonly string[]): Promise<readonly WorkspaceFile[]> {
    const entries = await Promise.all(
      this.getAllPaths()
        .filter(isInside)
        .map((path) => this.#entry(path)),
    )
    const chosen = chooseFiles(entries, patterns)
    return await Promise.all(
      chosen.map(async ({ path, executable }) => ({ path, executable, bytes: await this.readFileBuffer(posix.join(root, path)) })),
    )
  }

  /** Everything that commands may have written, folders before what is in them. */
  async pack(): Promise<readonly PackedEntry[]> {
    const paths = this.getAllPaths().filter((path) => isInside(path) || path.startsWith('/tmp/'))
    return await Promise.all(
      paths.sort().map(async (path) => {
        const { isDirectory, isSymbolicLink, mode } = await this.lstat(path)
        if (isSymbolicLink) return { path, mode, target: await this.readlink(path) }
        return { path, mode, ...(!isDirectory && { bytes: await this.readFileBuffer(path) }) }
      }),
    )
  }

  async unpack(entries: readonly PackedEntry[]): Promise<void> {
    for (const { path, mode, bytes, target } of entries) {
      if (target !== undefined) await this.symlink(target, path)
      else {
        if (bytes) await this.writeFile(path, bytes)
        else await this.mkdir(path, { recursive: true })
        await this.chmod(path, mode)
      }
    }
  }

  async #entry(path: string): Promise<FileEntry> {
    const { isDirectory, isSymbolicLink, size, mode } = await this.lstat(path)
    const kind = isSymbolicLink ? 'link' : isDirectory ? 'folder' : 'file'
    return { path: path.slice(root.length + 1), kind, bytes: size, executable: (mode & 0o100) !== 0 }
  }

  override async readFile(...[path, options]: Parameters<InMemoryFs['readFile']>): Promise<string> {
    refuseEndless(path)
    return super.readFile(path, options)
  }

  override async readFileBytes(path: string): ReturnType<InMemoryFs['readFileBytes']> {
    refuseEndless(path)
    return super.readFileBytes(path)
  }

  override async readFileBuffer(path: string): Promise<Uint8Array> {
    refuseEndless(path)
    return super.readFileBuffer(path)
  }

  async put(path: string, bytes: Uint8Array, executable = false): Promise<void> {
    const place = await this.#place(path)
    try {
      if (await this.exists(place)) {
        const { isFile } = await this.stat(place)
        if (!isFile) throw new ToolError(`"${path}" is no file.`)
      }
      await this.mkdir(posix.dirname(place), { recursive: true })
      await this.writeFile(place, bytes)
      if (executable) await this.chmod(place, 0o755)
    } catch (error) {
      throw toToolError(error, path)
    }
  }

  async get(path: string, maxBytes: number): Promise<Uint8Array> {
    const place = await this.#place(path)
    if (!(await this.exists(place))) throw new ToolError(`There is no file "${path}".`)
    try {
      const { isFile, size } = await this.stat(place)
      if (!isFile) throw new ToolError(`"${path}" is no file.`)
      if (size > maxBytes) throw new ToolError(`"${path}" has ${size} bytes; at most ${maxBytes} can be read.`)
      return await this.readFileBuffer(place)
    } catch (error) {
      throw toToolError(error, path)
    }
  }

  /** Returns the absolute path. No link on its way may lead out of the workspace. */
  async #place(path: string): Promise<string> {
    const absolute = posix.resolve(root, path)
    if (path.includes('\0') || !isInside(absolute)) throw outside(path)
    for (let ancestor = absolute; ancestor !== root; ancestor = posix.dirname(ancestor)) {
      const stat = await this.lstat(ancestor).catch(() => null)
      if (stat === null) continue
      const real = await this.realpath(ancestor).catch(() => null)
      if (real === null || (real !== root && !isInside(real))) throw outside(path)
      break
    }
    return absolute
  }
}

/** Refuses files without an end, which the simulation would have as empty ones. */
function refuseEndless(path: string): void {
  if (/^\/dev\/(?:zero|full|u?random)$/.test(path)) throw new Error(`EOPNOTSUPP: ${path} has no end, and is not simulated`)
}

const isInside = (path: string) => path.startsWith(`${root}/`)

const outside = (path: string) => new ToolError(`${JSON.stringify(path)} is outside of ${root}.`)

function toToolError(error: unknown, path: string): ToolError {
  if (error instanceof ToolError) return error
  const message = errorMessage(error)
  if (message.startsWith('ENOSPC')) return new ToolError(`"${path}" does not fit: the workspace is full. Delete files that are not needed.`)
  if (/^E(?:NOTDIR|EXIST)/.test(message)) return new ToolError(`"${path}" is no file: a part of its path is a file.`)
  return new ToolError(`"${path}" cannot be opened: ${message}`)
}

/** Text of a command is UTF-8, or has one character for each byte. */
function toBytes(content: FileContent, encoding: string | null | undefined): Buffer {
  if (typeof content !== 'string') return Buffer.from(content)
  return Buffer.from(content, encoding === 'binary' || encoding === 'latin1' ? 'latin1' : 'utf8')
}
