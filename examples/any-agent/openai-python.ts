import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { AgentProgram } from 'aworld-train'
import { questionOf } from './elements.ts'

export interface PythonAgentOptions {
  /** An interpreter that has the packages of requirements.txt. */
  readonly python: string
  readonly stream: boolean
}

interface Waiting {
  resolve(answer: string | null): void
  reject(error: Error): void
}

const script = fileURLToPath(new URL('openai_python.py', import.meta.url))

/** One Python process that answers tasks side by side; it starts with the first and ends with `close`. */
export function createPythonAgent({ python, stream }: PythonAgentOptions): AgentProgram & { close(): Promise<void> } {
  const waiting = new Map<number, Waiting>()
  let child: ChildProcess | undefined
  let taskCount = 0

  function start(): ChildProcess {
    const started = spawn(python, [script], { stdio: ['pipe', 'pipe', 'pipe'] })
    let complaint = ''
    started.stderr.setEncoding('utf8').on('data', (text: string) => {
      complaint = (complaint + text).slice(-2000)
    })
    started.stdin.on('error', () => {})
    createInterface({ input: started.stdout }).on('line', (line) => {
      const { id, answer, error } = JSON.parse(line) as { id: number; answer?: string | null; error?: string }
      if (error === undefined) waiting.get(id)?.resolve(answer ?? null)
      else waiting.get(id)?.reject(new Error(error))
      waiting.delete(id)
    })
    const end = (reason: string) => {
      child = undefined
      for (const { reject } of waiting.values()) reject(new Error(`${python} ${script} ${reason}\n${complaint}`.trim()))
      waiting.clear()
    }
    started.on('error', (error) => end(error.message)).on('close', (code) => end(`ended with ${code}.`))
    return started
  }

  return {
    agents: [{ name: 'agent', trainable: true }],
    async run(task, { policy, signal }) {
      child ??= start()
      const id = taskCount++
      const { promise, resolve, reject } = Promise.withResolvers<string | null>()
      waiting.set(id, { resolve, reject })
      const abort = () => reject(signal.reason)
      signal.addEventListener('abort', abort)
      try {
        const job = { id, question: questionOf(task), stream, ...policy('agent') }
        child.stdin?.write(`${JSON.stringify(job)}\n`)
        return { answer: await promise, messages: [] }
      } finally {
        signal.removeEventListener('abort', abort)
        waiting.delete(id)
      }
    },
    async close() {
      const running = child
      if (!running) return
      const ended = new Promise<void>((resolve) => running.once('close', () => resolve()))
      running.stdin?.end()
      const late = setTimeout(() => running.kill('SIGKILL'), 5_000)
      await ended
      clearTimeout(late)
    },
  }
}

const python = process.env['PYTHON'] ?? 'python3'

export const agent = createPythonAgent({ python, stream: false })

export const streamingAgent = createPythonAgent({ python, stream: true })
