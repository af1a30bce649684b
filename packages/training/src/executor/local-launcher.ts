import { type ChildProcess, spawn } from 'node:child_process'
import { type LaunchedWorker, type Launcher, TrainError, type WorkerLaunch } from '@aworld-train/core'

/** Exit code of a worker that only another configuration can help. */
const misuse = 2
/** A worker that ends sooner than this, without having connected, has failed to start. */
const shortLifeMs = 5_000
/** A worker is not started again after this many short lives in a row. The bound is lower if it ended itself than if a signal ended it. */
const maxShortLives = { ended: 5, killed: 12 }
const firstDelayMs = 100
const longestDelayMs = 1_600
/** How long a worker may take to leave before it is killed. */
const leaveMs = 5_000
/** How long the last output of an ended worker is waited for. */
const lastWordsMs = 500
/** Most characters of a worker's last output that an error shows. */
const tailLength = 2_000

interface Child {
  readonly name: string
  process: ChildProcess | null
  restarts: number
  shortLives: number
  /** Whether it was told to end. */
  leaving: boolean
  restart: NodeJS.Timeout | undefined
}

/** Runs workers as child processes. They end with this process, however it ends. */
export function createLocalLauncher({ workerNum, worker, onWarning, onExit, onFailed, ...settings }: WorkerLaunch): Launcher {
  const children: Child[] = []
  /** Workers that were told to leave and have not finished. */
  const draining = new Set<Child>()

  function run(child: Child): void {
    const { command, env } = worker(child.name)
    const [file, ...args] = command as [string, ...string[]]
    // The worker sees by its standard input when this process is gone.
    const started = spawn(file, args, { stdio: 'pipe', env: { ...process.env, ...env } })
    const startedAt = performance.now()
    let hasConnected = false
    let tail = ''
    child.process = started
    started.stdin?.on('error', () => {})
    // An agent prints to the same place as without workers. With `--json` that is not the standard output of this process.
    started.stdout?.on('data', (text: Buffer) => void process.stdout.write(text))
    started.stderr?.setEncoding('utf8').on('data', (text: string) => {
      process.stderr.write(text)
      tail = (tail + text).slice(-tailLength)
    })
    started.once('error', (error) => {
      tail += error.message
    })
    // A process that the worker started may outlive it and hold its output open.
    started.once('exit', () => {
      hasConnected = onExit(child.name) === true
      setTimeout(() => {
        for (const stream of [started.stdout, started.stderr]) stream?.destroy()
      }, lastWordsMs).unref()
    })
    started.once('close', (code, signal) => {
      child.process = null
      if (child.leaving) return
      child.shortLives = hasConnected || performance.now() - startedAt >= shortLifeMs ? 0 : child.shortLives + 1
      const how = signal === null ? `with code ${code}` : `by ${signal}`
      if (code === misuse || child.shortLives >= maxShortLives[signal === null ? 'ended' : 'killed']) {
        child.leaving = true
        const message = `Worker "${child.name}" cannot run: it ended ${how}, and printed: ${tail.trim() || 'nothing'}`
        onFailed(new TrainError('CONFIG_INVALID', message))
        return
      }
      child.restarts++
      onWarning(`Worker "${child.name}" ended ${how} and is started again.${tail.trim() === '' ? '' : ` It printed: ${tail.trim()}`}`)
      child.restart = setTimeout(run, Math.min(longestDelayMs, firstDelayMs * 2 ** child.shortLives), child)
    })
  }

  /** Makes a worker leave. Without `deadlineMs`, a worker finishes its work first. */
  function end(child: Child, deadlineMs?: number): Promise<void> {
    child.leaving = true
    clearTimeout(child.restart)
    const { process: running } = child
    if (!running) return Promise.resolve()
    running.kill('SIGTERM')
    const late = deadlineMs === undefined ? undefined : setTimeout(() => running.kill('SIGKILL'), deadlineMs)
    return new Promise((resolve) => {
      running.once('close', () => {
        clearTimeout(late)
        resolve()
      })
    })
  }

  async function scale(count: number): Promise<void> {
    while (children.length < count) {
      const child: Child = {
        name: `local-${children.length}`,
        process: null,
        restarts: 0,
        shortLives: 0,
        leaving: false,
        restart: undefined,
      }
      children.push(child)
      run(child)
    }
    const leaving = children.splice(count)
    for (const child of leaving) draining.add(child)
    await Promise.all(leaving.map((child) => end(child).finally(() => draining.delete(child))))
  }

  return {
    async plan() {
      const unread = (['address', 'resources', 'options'] as const).filter((key) => Object.keys(settings[key] ?? {}).length > 0)
      if (unread.length > 0) {
        const keys = unread.map((key) => `executor.${key}`).join(', ')
        throw new TrainError(
          'CONFIG_INVALID',
          `${keys}: engine "local" starts child processes of this one and reads none of these; leave them out, or name an engine that does.`,
        )
      }
      return [`${workerNum} worker${workerNum === 1 ? '' : 's'} in child processes of this one`]
    },
    start: () => scale(workerNum),
    scale,
    status: async () =>
      children.map(
        ({ name, process: running, restarts, leaving }): LaunchedWorker => ({
          name,
          restarts,
          state: running ? 'running' : leaving ? 'ended' : 'starting',
        }),
      ),
    async stop() {
      await Promise.all([...draining, ...children.splice(0)].map((child) => end(child, leaveMs)))
    },
  }
}
