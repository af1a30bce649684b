import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { type RewardOutput, type ScoringContext, TrainError, withDeadline } from '@aworld-train/core'
import { plainValue } from '../dataset/plain-value.ts'
import type { CallProcess } from './reward-calls.ts'

/** A callable of the user's file. */
export interface PythonFunction {
  readonly name: string
  /** Whether it is defined in the file, rather than imported into it. */
  readonly own: boolean
  readonly signature: string
  readonly async: boolean
  /** Whether it takes the four values of a reward by name, and by position. */
  readonly keywords: boolean
  readonly positions: boolean
  /** Whether it also takes `model`, the way to the frozen models. */
  readonly asksModels: boolean
}

/** The result of a call, by its id. */
export type PythonAnswer = { readonly id: number } & (
  | ({ readonly kind: 'value' } & RewardOutput)
  | { readonly kind: 'invalid'; readonly description: string }
  | ({ readonly kind: 'threw' } & PythonFailure)
  | { readonly kind: 'timeout'; readonly stuck: boolean }
  | { readonly kind: 'cancelled' }
)

interface PythonFailure {
  readonly message: string
  /** `file:line` of the user's code. */
  readonly where: string | null
  readonly stack: string
  readonly outOfMemory: boolean
  /** The name of a frozen model that the function asked for and that is not there. */
  readonly unknownModel?: string
}

export interface PythonValues {
  readonly arguments: readonly unknown[]
  readonly endpoints: ScoringContext['endpoints']
}

export interface PythonChoice {
  readonly use: string
  readonly byKeyword: boolean
  readonly asksModels: boolean
  readonly threads: number
  /** Memory that the process may use in addition to its use after loading the file. */
  readonly memoryMb: number
}

/** A Python process that has loaded the user's file. Its owner closes it. */
export interface PythonProcess extends CallProcess<PythonValues, PythonAnswer> {
  readonly functions: readonly PythonFunction[]
  /** Chooses the function. Calls may be sent after this. */
  use(choice: PythonChoice): void
}

const startTimeoutMs = 120_000
const outputCharacters = 4000
const script = fileURLToPath(new URL('../../python/reward_worker.py', import.meta.url))

/** AWORLD_TRAIN_PYTHON, else the `python3` on PATH. */
const defaultPython = () => process.env['AWORLD_TRAIN_PYTHON'] || (process.platform === 'win32' ? 'python' : 'python3')

/** Starts Python and loads a file in it. Throws MODULE_INVALID if there is no Python or the file cannot be loaded. */
export async function startPython(path: string, python: string = defaultPython()): Promise<PythonProcess> {
  const child = spawn(python, ['-X', 'utf8', '-B', '-u', script, path], { env: environment(), stdio: ['pipe', 'pipe', 'pipe'] })
  let output = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    output = (output + text).slice(-outputCharacters)
    process.stderr.write(text)
  })
  // Between calls the child must not keep this process alive. A failed write to a child that has ended shows as its exit.
  child.stdin.on('error', () => {})
  for (const handle of [child, ...child.stdio]) (handle as { unref?: () => void } | null)?.unref?.()

  const exited = new Promise<string>((resolve) => {
    child.once('error', (error) => resolve(error.message))
    child.once('close', (code, signal) => resolve(signal === null ? `it ended with code ${code}` : `it was ended by ${signal}`))
  })
  const send = (message: object) => void child.stdin.write(`${JSON.stringify(plainValue(message))}\n`)
  const close = async () => {
    child.removeAllListeners('close')
    if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
    const ended = new Promise((resolve) => child.once('exit', resolve))
    child.ref()
    child.kill('SIGKILL')
    await ended
  }

  let onLine: (line: string) => void = () => {}
  createInterface({ input: child.stdout, crlfDelay: Number.POSITIVE_INFINITY }).on('line', (line) => onLine(line))
  const { promise: first, resolve, reject } = Promise.withResolvers<LoadReply>()
  const cannot = (why: string, cause?: unknown) =>
    new TrainError('MODULE_INVALID', `The reward file ${path} cannot be loaded by ${python}: ${why}`, { cause })
  onLine = (line) => resolve(JSON.parse(line) as LoadReply)
  child.once('error', (error: NodeJS.ErrnoException) => {
    const why = error.code === 'ENOENT' ? 'there is no such program' : error.message
    reject(cannot(`${why}; install Python 3, or set AWORLD_TRAIN_PYTHON to one.`, error))
  })
  void exited.then((why) => reject(cannot(`${why}.${lastLine(output)}`)))
  try {
    const reply = await withDeadline(first, startTimeoutMs, () => cannot(`it did not load within ${startTimeoutMs / 1000} s.`))
    if (reply.kind === 'failed') {
      const remedy = /^ModuleNotFoundError/.test(reply.message)
        ? ' Install it for this Python, or set AWORLD_TRAIN_PYTHON to one that has it.'
        : ''
      throw cannot(`${described(reply)}.${remedy}`, reply.stack)
    }
    return {
      functions: reply.functions,
      use: send,
      listen(listener) {
        onLine = (line) => listener.onAnswer(JSON.parse(line) as PythonAnswer)
        void exited.then((why) => listener.onExit(`${why}.${lastLine(output)}`))
      },
      call: ({ id, values, timeoutMs }) => send({ id, ...values, timeoutMs }),
      cancel: (id) => send({ cancel: id }),
      close,
    }
  } catch (error) {
    await close()
    throw error
  }
}

type LoadReply = { readonly kind: 'loaded'; readonly functions: readonly PythonFunction[] } | ({ readonly kind: 'failed' } & PythonFailure)

/** Describes an exception in one line, with the place in the user's code. */
export function described({ message, where }: { readonly message: string; readonly where: string | null }): string {
  return where === null ? message : `${message} (${where})`
}

const lastLine = (output: string) => {
  const line = output.trimEnd().split('\n').at(-1)?.trim()
  return line ? ` It last wrote: ${line}` : ''
}

/** The variables of this process except its own: tokens and addresses of a run, and settings of Node and npm. */
function environment(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(?:AWORLD_TRAIN_|NODE_|npm_|VITEST)/i.test(name)))
}
