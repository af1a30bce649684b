import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import type { Socket } from 'node:net'
import { createInterface } from 'node:readline'
import { TrainError } from '@aworld-train/core'
import { z } from 'zod'

export interface AnsweringPythonOptions {
  /** Interpreter that has the framework. */
  readonly python: string
  /** Arguments that have it answer each line of its standard input with one of JSON. */
  readonly args: readonly string[]
  readonly env?: NodeJS.ProcessEnv | undefined
  readonly cwd?: string | undefined
  /** What it is asked to do and the framework's name in commands, for messages. */
  readonly task: string
  readonly trainer: string
  /** Longest wait for an answer. */
  readonly timeoutMs?: number | undefined
}

/** A Python that answers one question after the other. */
export interface AnsweringPython {
  /** Throws CONFIG_INVALID if Python gives no answer. */
  ask<Answer>(request: unknown, schema: z.ZodType<Answer>, signal?: AbortSignal): Promise<Answer>
  /** Ends the process. The next question starts another. */
  close(): void
}

/** How long it waits for the next question before it ends. */
const idleMs = 60_000

const Failed = z.object({ errors: z.array(z.object({ message: z.string() })).min(1) })

/**
 * Creates a Python that starts with its first question and keeps for the next what it has imported, which takes most of the time. It ends by
 * itself when it is idle, and with this process, which it does not keep alive.
 */
export function createAnsweringPython(options: AnsweringPythonOptions): AnsweringPython {
  const { timeoutMs = 300_000 } = options
  let running: RunningPython | null = null
  let idle: NodeJS.Timeout | undefined
  let asking: Promise<unknown> = Promise.resolve()

  function close(): void {
    clearTimeout(idle)
    running?.child.stdin.end()
    running = null
  }

  async function answerTo(request: unknown, signal: AbortSignal | undefined): Promise<unknown> {
    clearTimeout(idle)
    signal?.throwIfAborted()
    if (running === null || hasEnded(running.child)) running = startPython(options)
    const limits = [AbortSignal.timeout(timeoutMs), ...(signal ? [signal] : [])]
    try {
      return JSON.parse(await running.ask(JSON.stringify(request), AbortSignal.any(limits)))
    } catch (cause) {
      running?.child.kill()
      running = null
      signal?.throwIfAborted()
      const late = cause instanceof Error && cause.name === 'TimeoutError'
      throw unanswered(options, late ? `it took longer than ${timeoutMs / 1000} s` : (cause as Error).message, cause)
    } finally {
      idle = setTimeout(close, idleMs).unref()
    }
  }

  return {
    async ask(request, schema, signal) {
      const answered = asking.then(() => answerTo(request, signal))
      asking = answered.catch(() => {})
      const answer = await answered
      const parsed = schema.safeParse(answer)
      if (parsed.success) return parsed.data
      const failed = Failed.safeParse(answer)
      const why = failed.success ? failed.data.errors.map(({ message }) => message).join(' ') : parsed.error.message
      throw unanswered(options, why, parsed.error)
    },
    close,
  }
}

interface RunningPython {
  readonly child: ChildProcessWithoutNullStreams
  /** Resolves to the next line of its output that is an object in JSON. Rejects when it ends instead, or when `signal` aborts, which ends it. */
  ask(line: string, signal: AbortSignal): Promise<string>
}

function startPython({ python, args, cwd, env }: AnsweringPythonOptions): RunningPython {
  const child = spawn(python, args, { cwd, env })
  const handles = [child, ...[child.stdin, child.stdout, child.stderr].map((stream) => stream as unknown as Socket)]
  let stderr = ''
  child.stderr.on('data', (chunk: Buffer) => {
    stderr = `${stderr}${chunk.toString()}`.slice(-4_000)
  })
  // The process may end while it is written to.
  child.stdin.on('error', () => {})
  const lines = createInterface({ input: child.stdout })
  return {
    child,
    async ask(line, signal) {
      signal.throwIfAborted()
      for (const handle of handles) handle.ref()
      const { promise, resolve, reject } = Promise.withResolvers<string>()
      const stop = () => {
        child.kill('SIGKILL')
        reject(signal.reason)
      }
      const ended = (code: number | null) => reject(new Error(stderr.trim().split('\n').at(-1) || `it ended with ${code}`))
      signal.addEventListener('abort', stop, { once: true })
      const read = (text: string) => text.startsWith('{') && resolve(text)
      lines.on('line', read)
      child.once('error', reject).once('close', ended)
      if (hasEnded(child)) ended(child.exitCode)
      child.stdin.write(`${line}\n`)
      try {
        return await promise
      } finally {
        signal.removeEventListener('abort', stop)
        lines.off('line', read)
        child.off('error', reject).off('close', ended)
        for (const handle of handles) handle.unref()
      }
    },
  }
}

const hasEnded = ({ exitCode, signalCode }: ChildProcessWithoutNullStreams) => exitCode !== null || signalCode !== null

function unanswered({ python, task, trainer }: AnsweringPythonOptions, why: string, cause: unknown): TrainError {
  return new TrainError(
    'CONFIG_INVALID',
    `${python} could not ${task}: ${why}; check that Python with "aworld-train doctor --engine ${trainer}".`,
    { cause },
  )
}
