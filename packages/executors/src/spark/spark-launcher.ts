import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { type LaunchedWorker, type Launcher, type LauncherEngine, TrainError, type WorkerLaunch } from '@aworld-train/core'
import { z } from 'zod'
import { readSparkSettings } from './options.ts'

/** The printed reports of Spark's driver. */
const Report = z.union([
  z.object({ failed: z.string() }),
  z.object({ ready: z.literal(true) }),
  z.object({ name: z.string(), state: z.enum(['starting', 'running', 'ended']), how: z.string(), printed: z.string() }),
])

const script = fileURLToPath(new URL('../../python/spark/launch.py', import.meta.url))
const mark = 'AWORLD_TRAIN {'
/** How long a driver may take to end its application before it is killed. */
const leaveMs = 20_000
const tailLength = 4_000
const run = promisify(execFile)

/** Engine "spark": workers run in tasks of Spark, one partition each. */
export const sparkEngine: LauncherEngine = {
  name: 'spark',
  isElsewhere: (settings) => !/^(local|spark:\/\/(localhost|127\.))/.test(readSparkSettings(settings).master),
  create: createSparkLauncher,
}

/** Finds the versions of Java and PySpark. Rejects with CONFIG_INVALID if one is missing. */
async function findVersions(python: string): Promise<string> {
  const home = process.env['JAVA_HOME']
  const java = home ? join(home, 'bin', 'java') : 'java'
  const { stderr } = await run(java, ['-version']).catch((cause: Error) => {
    const where = home ? `${java}, where JAVA_HOME leads` : 'PATH'
    throw new TrainError(
      'CONFIG_INVALID',
      `There is no Java at ${where}, and Spark runs on it; install Java 17 or newer (Debian: openjdk-17-jre-headless), or set JAVA_HOME.`,
      { cause },
    )
  })
  const { stdout } = await run(python, ['-c', 'import pyspark; print(pyspark.__version__)']).catch((cause: Error) => {
    const message = `${python} has no PySpark (${cause.message.trim().split('\n').at(-1)}); install pyspark 4, or name the Python that has it in executor.options.python.`
    throw new TrainError('CONFIG_INVALID', message, { cause })
  })
  return `Spark ${stdout.trim()} on Java ${/version "([^"]+)"/.exec(stderr)?.[1] ?? 'of an unknown version'}`
}

/** Starts workers in tasks of Spark, by a driver that is a child process of this one and ends with it. */
export function createSparkLauncher(launch: WorkerLaunch): Launcher {
  const { workerNum, worker, onWarning, onFailed } = launch
  const { master, python, properties } = readSparkSettings(launch)
  const workers = new Map<string, LaunchedWorker>()
  let driver: ChildProcess | null = null
  let names = 0
  let stopped = false

  function take(line: string): void {
    const report = Report.parse(JSON.parse(line.slice(mark.length - 1)))
    if ('ready' in report) return
    if ('failed' in report) {
      onFailed(new TrainError('CONFIG_INVALID', report.failed))
      return
    }
    const { name, state, how, printed } = report
    const before = workers.get(name)
    if (!before) return
    workers.set(name, { ...before, state, restarts: before.restarts + (state === 'starting' ? 1 : 0) })
    if (state === 'starting')
      onWarning(`Worker "${name}" ${how} and is started again.${printed.trim() === '' ? '' : ` It printed: ${printed.trim()}`}`)
  }

  function startDriver(): ChildProcess {
    const plan = JSON.stringify({ master, name: 'aworld-train', properties })
    const started = spawn(python, [script], {
      stdio: ['pipe', 'pipe', 'pipe'],
      env: { PYSPARK_PYTHON: python, ...process.env, AWORLD_TRAIN_LAUNCH: plan },
    })
    let tail = ''
    let rest = ''
    started.stdin?.on('error', () => {})
    started.stderr?.setEncoding('utf8').on('data', (text: string) => {
      tail = (tail + text).slice(-tailLength)
    })
    started.stdout?.setEncoding('utf8').on('data', (text: string) => {
      const lines = (rest + text).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) if (line.startsWith(mark)) take(line)
    })
    started.once('error', (error) => {
      tail += error.message
    })
    started.once('close', (code, signal) => {
      driver = null
      if (stopped) return
      const names = [...workers.keys()]
      onWarning(
        `The driver of Spark ended ${signal === null ? `with code ${code}` : `by ${signal}`} with ${names.length} workers and is started again. It printed: ${tail.trim()}`,
      )
      if (code !== null && code !== 0)
        return onFailed(
          new TrainError('CONFIG_INVALID', `Spark cannot run workers: its driver ended with code ${code}, and printed: ${tail.trim()}`),
        )
      for (const [name, before] of workers) workers.set(name, { ...before, state: 'starting', restarts: before.restarts + 1 })
      send(names, [])
    })
    return started
  }

  function send(start: readonly string[], cancel: readonly string[]): void {
    driver ??= startDriver()
    const entries = start.map((name) => {
      const { command, env } = worker(name)
      return { name, command, env: { ...env } }
    })
    driver.stdin?.write(`${JSON.stringify({ start: entries, cancel })}\n`)
  }

  async function scale(count: number): Promise<void> {
    const all = [...workers.keys()]
    const leaving = all.slice(count)
    const added = Array.from({ length: Math.max(0, count - all.length) }, () => `spark-${names++}`)
    for (const name of leaving) workers.delete(name)
    for (const name of added) workers.set(name, { name, state: 'starting', restarts: 0 })
    if (leaving.length + added.length > 0) send(added, leaving)
  }

  return {
    async plan() {
      return [`${workerNum} worker${workerNum === 1 ? '' : 's'}, each in a partition of ${await findVersions(python)}, master ${master}`]
    },
    start: () => scale(workerNum),
    /** Workers that leave are cancelled, and their attempts begin again elsewhere. */
    scale,
    status: async () => [...workers.values()],
    async stop() {
      stopped = true
      workers.clear()
      const ending = driver
      if (!ending) return
      ending.stdin?.end()
      const late = setTimeout(() => ending.kill('SIGKILL'), leaveMs)
      await new Promise((resolve) => ending.once('close', resolve))
      clearTimeout(late)
    },
  }
}
