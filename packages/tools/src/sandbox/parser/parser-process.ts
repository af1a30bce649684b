import { type ChildProcess, spawn } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import type { Duplex } from 'node:stream'
import { ToolError } from '@aworld-train/core'
import { tieLifeline } from '../bubblewrap/lifeline.ts'
import { endTree } from '../bubblewrap/processes.ts'
import type { ParserAnswer } from './parser-child.ts'
import { filterFd, lifelineFd } from './parser-command.ts'

export interface ParserLimits {
  readonly timeoutMs: number
  /** Memory of the whole process, in bytes. */
  readonly memoryBytes: number
  /** Bytes of the answer as JSON. */
  readonly answerBytes: number
}

export interface ParserInput {
  readonly options: unknown
  readonly bytes: Uint8Array
  /** Filter of system calls, if the program runs in bubblewrap. */
  readonly filter?: Buffer | undefined
  /** Whether it may start a thread, which maps as much memory at its start as the process. */
  readonly isNative: boolean
}

const watchMs = 50
const pageBytes = 4_096
/** Windows needs SystemRoot to start any program. */
const environment = process.platform === 'win32' ? { SystemRoot: process.env['SystemRoot'] } : {}

/** Private memory that Node maps before it runs anything, most of it unused. */
const mappedAtStartBytes = 640 * 2 ** 20

/** Makes the system limit a program's memory, however fast it grows, where the system can. */
function withinMemory(
  command: readonly [string, ...string[]],
  isNative: boolean,
  { memoryBytes }: ParserLimits,
): readonly [string, ...string[]] {
  if (process.platform !== 'linux') return command
  const bytes = memoryBytes + mappedAtStartBytes * (isNative ? 2 : 1)
  return ['/bin/sh', '-c', 'ulimit -d "$0" && exec "$@"', String(Math.ceil(bytes / 1_024)), ...command]
}

const saysOutOfMemory = (text: string) => /out of memory|allocation failed|failed to allocate/i.test(text)

/** Runs one parse to its end. Whatever ends it early ends the process. */
export async function runParser(
  command: readonly [string, ...string[]],
  input: ParserInput,
  limits: ParserLimits,
  signal: AbortSignal,
): Promise<unknown> {
  signal.throwIfAborted()
  const [program, ...args] = withinMemory(command, input.isNative, limits)
  const stdio = Array<'pipe'>(input.filter ? lifelineFd + 1 : filterFd).fill('pipe')
  const child = spawn(program, args, { env: environment, cwd: '/', stdio, windowsHide: true })
  if (input.filter) tieLifeline(child, lifelineFd)
  const gone = new Promise<void>((resolve) => child.once('close', () => resolve()))
  const { promise: stopped, reject: stop } = Promise.withResolvers<never>()
  const megabytes = Math.round(limits.memoryBytes / 2 ** 20)
  const tooMuch = () =>
    new ToolError(`The file takes more than ${megabytes} MB of memory to read; ask for a smaller part, or another file.`)
  const onAbort = () => stop(signal.reason)
  signal.addEventListener('abort', onAbort, { once: true })
  const timer = setTimeout(
    () => stop(new ToolError(`The file takes longer than ${limits.timeoutMs / 1_000} s to read; ask for a smaller part, or another file.`)),
    limits.timeoutMs,
  )
  const watch = setInterval(() => {
    if (child.pid !== undefined) void residentBytes(child.pid).then((bytes) => bytes > limits.memoryBytes && stop(tooMuch()))
  }, watchMs)
  try {
    return await Promise.race([answerOf(child, input, limits, tooMuch), stopped])
  } finally {
    clearTimeout(timer)
    clearInterval(watch)
    signal.removeEventListener('abort', onAbort)
    endTree(child)
    if (child.pid !== undefined) await gone
  }
}

async function answerOf(
  child: ChildProcess,
  { options, bytes, filter }: ParserInput,
  { answerBytes }: ParserLimits,
  tooMuch: () => ToolError,
): Promise<unknown> {
  const chunks: Buffer[] = []
  let size = 0
  let errors = ''
  const ended = new Promise<string>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code, signal) => resolve(signal ?? `exit code ${code}`))
    child.stdout!.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size <= answerBytes) chunks.push(chunk)
      else reject(new ToolError('What the file holds is too large for one answer; ask for a smaller part.'))
    })
  })
  child.stderr!.on('data', (chunk) => {
    errors = (errors + String(chunk)).slice(-4_000)
  })
  const filterPipe = child.stdio[filterFd] as Duplex | undefined
  // A process that has ended reads no more.
  for (const stream of [child.stdin, filterPipe]) stream?.on('error', () => {})
  filterPipe?.end(filter).resume()
  child.stdin!.write(`${JSON.stringify(options ?? null)}\n`)
  child.stdin!.end(bytes)
  const end = await ended
  const answer = chunks.length > 0 ? (JSON.parse(Buffer.concat(chunks).toString()) as ParserAnswer) : null
  if (answer && 'value' in answer) return answer.value
  if (saysOutOfMemory(answer?.error ?? errors)) throw tooMuch()
  if (answer) throw new ToolError(answer.error)
  throw new Error(`A parser ended with ${end} and without an answer. ${errors}`.trim())
}

/** Memory of a process and those below it, if the system reports it. */
async function residentBytes(pid: number): Promise<number> {
  const read = (path: string) => readFile(path, 'utf8').catch(() => '')
  const [statm, children] = await Promise.all([read(`/proc/${pid}/statm`), read(`/proc/${pid}/task/${pid}/children`)])
  const below = await Promise.all(
    children
      .split(' ')
      .filter(Boolean)
      .map((child) => residentBytes(Number(child))),
  )
  return below.reduce((sum, bytes) => sum + bytes, Number(statm.split(' ')[1] ?? 0) * pageBytes)
}
