import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { bridgeDirectory } from '@aworld-train/trainers/shared'

const play = fileURLToPath(new URL('../../../packages/trainers/python/tests/with_verl/play_worker.py', import.meta.url))

export interface WorkerRow {
  readonly prompt: number
  readonly response: number
  readonly mask: number
  readonly reward: number | null
  readonly info: Readonly<Record<string, number>>
}

export interface WorkerRollout {
  readonly key?: string
  readonly rows?: readonly WorkerRow[]
  readonly turns?: number
  readonly error?: { readonly code: string; readonly message: string; readonly retryable: boolean }
}

export interface WorkerAnswer {
  readonly results: readonly WorkerRollout[]
  readonly calls: number
  readonly tokens: number
  readonly cpuSeconds: number
  readonly wallSeconds: number
}

export interface PythonWorker {
  /** Plays one scenario of play_worker.py. */
  play(scenario: Readonly<Record<string, unknown>>): Promise<WorkerAnswer>
  close(): Promise<void>
}

/** A Python process with verl's agent loop, which plays scenarios one after the other. */
export function startWorker(python: string): PythonWorker {
  const child = spawn(python, ['-W', 'ignore', play], {
    env: { ...process.env, PYTHONPATH: bridgeDirectory, PYTHONDONTWRITEBYTECODE: '1', TOKENIZERS_PARALLELISM: 'false' },
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  let log = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    log = (log + text).slice(-8000)
  })
  let waiting: PromiseWithResolvers<WorkerAnswer> | undefined
  child.stdin.on('error', () => {})
  createInterface({ input: child.stdout }).on('line', (line) => {
    if (line.startsWith('{"results"')) waiting?.resolve(JSON.parse(line))
  })
  const exited = new Promise<void>((resolve) => child.once('close', () => resolve()))
  return {
    async play(scenario) {
      waiting = Promise.withResolvers<WorkerAnswer>()
      child.stdin.write(`${JSON.stringify(scenario)}\n`)
      const died = exited.then(() => {
        throw new Error(`The Python worker ended:\n${log}`)
      })
      return await Promise.race([waiting.promise, died])
    },
    async close() {
      child.stdin.end()
      const timer = setTimeout(() => child.kill('SIGKILL'), 10_000)
      await exited
      clearTimeout(timer)
    },
  }
}
