import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { bridgeDirectory } from '@aworld-train/python-bridge'

const tests = fileURLToPath(new URL('../../../packages/python-bridge/python/tests', import.meta.url))

export interface TrainScenario {
  readonly plan: Readonly<Record<string, unknown>>
  /** File that gets the metrics. */
  readonly metrics: string
  readonly environment: Readonly<Record<string, string>>
  /** What is broken, as train_worker.py names it. */
  readonly fault?: string | undefined
}

export interface TrainWorker {
  /** Trains to the end; the error that ended it, or null. */
  train(scenario: TrainScenario): Promise<{ readonly code: string; readonly message: string } | null>
  close(): Promise<void>
}

/** A Python process that trains one scenario after the other: train_worker.py of a folder of tests, of TRL unless named. */
export function startTrainWorker(python: string, folder = 'with_trl'): TrainWorker {
  const child = spawn(python, ['-W', 'ignore', join(tests, folder, 'train_worker.py')], {
    env: { ...process.env, PYTHONPATH: bridgeDirectory, PYTHONDONTWRITEBYTECODE: '1', HF_HUB_OFFLINE: '1', OMP_NUM_THREADS: '1' },
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  let log = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    log = (log + text).slice(-8000)
  })
  child.stdin.on('error', () => {})
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const exited = new Promise<void>((resolve) => child.once('close', () => resolve()))
  return {
    async train(scenario) {
      child.stdin.write(`${JSON.stringify(scenario)}\n`)
      const { value, done } = await lines.next()
      if (done) throw new Error(`The Python worker ended:\n${log}`)
      return (JSON.parse(value) as { error: { code: string; message: string } | null }).error
    },
    async close() {
      child.stdin.end()
      const timer = setTimeout(() => child.kill('SIGKILL'), 10_000)
      await exited
      clearTimeout(timer)
    },
  }
}
