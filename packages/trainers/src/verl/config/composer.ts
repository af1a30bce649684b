import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import type { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { createInterface } from 'node:readline'
import { TrainError } from '@aworld-train/core'
import { z } from 'zod'
import { withBridge } from '../../shared/python-package.ts'

export interface ComposerOptions {
  /** Interpreter that has verl. */
  readonly python: string
  readonly env?: NodeJS.ProcessEnv | undefined
  /** Longest wait for an answer. */
  readonly timeoutMs?: number | undefined
}

/** A Python that composes verl's configuration. It answers one question after the other. */
export interface Composer {
  /** Throws CONFIG_INVALID if Python gives no answer. */
  ask<Answer>(request: unknown, schema: z.ZodType<Answer>, signal?: AbortSignal): Promise<Answer>
  /** Ends the process. The next question starts another. */
  close(): void
}

/** How long it waits for the next question before it ends. */
const idleMs = 15_000

const Failed = z.object({ errors: z.array(z.object({ message: z.string() })).min(1) })

/**
 * Creates a composer. It starts with its first question and keeps Hydra's composition for the next, because an import and a composition
 * take most of the time. It ends by itself when it is idle, and with this process, which it does not keep alive.
 */
export function openComposer({ python, env = process.env, timeoutMs = 180_000 }: ComposerOptions): Composer {
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
    if (running?.child.exitCode !== null) running = startPython(python, env)
    const limits = [AbortSignal.timeout(timeoutMs), ...(signal ? [signal] : [])]
    try {
      return JSON.parse(await running.ask(JSON.stringify(request), AbortSignal.any(limits)))
    } catch (cause) {
      running = null
      signal?.throwIfAborted()
      const late = cause instanceof Error && cause.name === 'TimeoutError'
      throw unanswered(python, late ? `it took longer than ${timeoutMs / 1000} s` : (cause as Error).message, cause)
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
      throw unanswered(python, why, parsed.error)
    },
    close,
  }
}

interface RunningPython {
  readonly child: ChildProcessWithoutNullStreams
  /** Resolves to the next line of its output. Rejects when it ends instead, or when `signal` aborts, which ends it. */
  ask(line: string, signal: AbortSignal): Promise<string>
}

function startPython(python: string, env: NodeJS.ProcessEnv): RunningPython {
  const child = spawn(python, ['-m', 'aworld_train_bridge.verl.resolve_config'], {
    cwd: tmpdir(),
    env: { ...withBridge(env), VERL_USE_EXTERNAL_MODULES: '' },
  })
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
      lines.once('line', resolve)
      child.once('error', reject).once('close', ended)
      if (child.exitCode !== null || child.signalCode !== null) ended(child.exitCode)
      child.stdin.write(`${line}\n`)
      try {
        return await promise
      } finally {
        signal.removeEventListener('abort', stop)
        lines.off('line', resolve)
        child.off('error', reject).off('close', ended)
        for (const handle of handles) handle.unref()
      }
    },
  }
}

function unanswered(python: string, why: string, cause: unknown): TrainError {
  return new TrainError(
    'CONFIG_INVALID',
    `${python} could not compose verl's configuration: ${why}; check that Python with "aworld-train doctor --engine verl".`,
    { cause },
  )
}
