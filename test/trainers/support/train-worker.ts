import { spawn } from 'node:child_process'
import { delimiter, join } from 'node:path'
import { createInterface } from 'node:readline'
import { bridgeDirectory } from '@aworld-train/trainers/shared'

const tests = join(bridgeDirectory, 'tests')

export interface TrainScenario {
  readonly plan: Readonly<Record<string, unknown>>
  /** File that gets the metrics. */
  readonly metrics: string
  readonly environment: Readonly<Record<string, string>>
  /** What is broken, as train_scenarios.py and train_worker.py of the framework name it. */
  readonly fault?: string | undefined
}

export interface TrainWorker {
  /** Trains to the end; the error that ended it, or null. */
  train(scenario: TrainScenario): Promise<{ readonly code: string; readonly message: string } | null>
  close(): Promise<void>
}

/** A Python process that trains with a framework, one scenario after the other. */
export function startTrainWorker(framework: 'areal' | 'swift' | 'trl', python: string): TrainWorker {
  const child = spawn(python, ['-W', 'ignore', join(tests, `with_${framework}`, 'train_worker.py')], {
    env: {
      ...process.env,
      PYTHONPATH: [bridgeDirectory, tests].join(delimiter),
      HF_HUB_OFFLINE: '1',
      OMP_NUM_THREADS: '1',
    },
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
