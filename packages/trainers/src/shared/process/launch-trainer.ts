import { spawn } from 'node:child_process'
import { mkdirSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type BridgeVariables, type ConsoleReader, type MetricsLine, TrainError, type TrainerCommand } from '@aworld-train/core'
import { z } from 'zod'
import { plainLine, readLines } from './console-line.ts'
import { createConsoleLog } from './console-log.ts'
import { createJsonLineFollower } from './follow-json-lines.ts'
import { parseMetricsLine } from './metrics-file.ts'

export interface LaunchTrainerOptions {
  /** Name of the trainer, for messages and for the file of its console. */
  readonly trainer: string
  /** Absolute path of the Python that guards it. */
  readonly python: string
  readonly command: TrainerCommand
  /** The run directory, in which the trainer works and `<trainer>.log` is written, and variables of its processes. */
  readonly bridge: BridgeVariables
  readonly console: ConsoleReader
  /** One line of the console, without colours. */
  readonly onLine?: ((line: string) => void) | undefined
  /** One line of the metrics: a training step, or an evaluation by itself. */
  readonly onMetrics?: ((line: MetricsLine) => void) | undefined
  readonly deadlines?: Partial<StopDeadlines> | undefined
}

/** How long a trainer may take after each signal before the next, in milliseconds. */
export interface StopDeadlines {
  /** After SIGINT, in which a framework ends its workers. Default 15,000. */
  readonly interruptMs: number
  /** After SIGTERM. Default 10,000. */
  readonly terminateMs: number
  /** For processes that it leaves, such as Ray's, to end by themselves. Then they get SIGTERM and SIGKILL. Default 5,000. */
  readonly graceMs: number
}

export interface TrainerExit {
  /** Exit code; `null` if a signal ended it. */
  readonly code: number | null
  readonly signal: string | null
  /** Whether `stop` was called. */
  readonly stopped: boolean
  /** The failure that the console shows; `null` after a good end or a stop. */
  readonly error: TrainError | null
}

export interface TrainerProcess {
  /** The guard, leader of the process group. */
  readonly pid: number
  /** Resolves when the trainer and all that it started have ended, and all their output was handed over. */
  readonly ended: Promise<TrainerExit>
  /** Sends SIGINT, then SIGTERM, then SIGKILL to what is left. Returns the same promise as `ended`. */
  stop(): Promise<TrainerExit>
}

export const defaultStopDeadlines: StopDeadlines = { interruptMs: 15_000, terminateMs: 10_000, graceMs: 5_000 }

const statusLine = z.object({ code: z.int().nullable(), signal: z.string().nullable() })

const metricsEveryMs = 250
/** How long the console may stay open after the guard has ended, while another process holds it. */
const closeMs = 5_000
/** Last lines of the console that an error keeps. */
const keptLines = 40

/** The file of a trainer's console. */
export const consoleFileOf = (path: string, trainer: string) => join(path, `${trainer}.log`)

const guardScript = (bridgeDirectory: string) => join(bridgeDirectory, 'aworld_train_bridge', 'launch.py')

/** Variable in the environment of every process of a start, by which they are found. */
const markerOf = (incarnation: string) => ['--marker', `AWORLD_TRAIN_INCARNATION=${incarnation}`]

/**
 * Starts a trainer in a process group of its own, behind a guard. When this process dies, the guard ends the whole group and what the
 * trainer has started elsewhere. Throws TRAINER_ENVIRONMENT if Python cannot be started.
 */
export async function launchTrainer(options: LaunchTrainerOptions): Promise<TrainerProcess> {
  const { trainer, python, command, bridge, console, onLine, onMetrics } = options
  const { path, incarnation, bridgeDirectory } = bridge
  const deadlines = { ...defaultStopDeadlines, ...options.deadlines }
  mkdirSync(dirname(bridge.metricsFile), { recursive: true })
  for (const folder of command.folders) mkdirSync(folder, { recursive: true, mode: 0o700 })
  const guard = spawn(
    python,
    [
      ['-I', guardScript(bridgeDirectory)],
      markerOf(incarnation),
      ['--interrupt-s', String(deadlines.interruptMs / 1000)],
      ['--terminate-s', String(deadlines.terminateMs / 1000)],
      ['--grace-s', String(deadlines.graceMs / 1000)],
      command.temporary === null ? [] : ['--remove', command.temporary],
      ['--', ...command.command],
    ].flat(),
    { cwd: path, env: command.environment, detached: process.platform !== 'win32', stdio: ['pipe', 'pipe', 'pipe', 'pipe'] },
  )
  await new Promise<void>((resolve, reject) => {
    guard.once('spawn', resolve)
    guard.once('error', (cause) =>
      reject(
        new TrainError('TRAINER_ENVIRONMENT', `${python} cannot be started: ${cause.message}. Run "aworld-train setup ${trainer}".`, {
          cause,
        }),
      ),
    )
  })
  const exited = Promise.all([
    new Promise((resolve) => guard.once('exit', resolve)),
    new Promise((resolve) => (guard.stdio[3] as NodeJS.ReadableStream).once('close', resolve)),
  ])
  const closed = new Promise<void>((resolve) => guard.once('close', () => resolve()))
  const log = createConsoleLog(consoleFileOf(path, trainer))
  const tail: string[] = []
  for (const stream of [guard.stdout, guard.stderr]) {
    readLines(stream, (raw) => {
      const line = plainLine(raw)
      log.write(line)
      tail.push(line)
      if (tail.length > keptLines) tail.shift()
      console.read(line)
      onLine?.(line)
    })
  }
  let status = ''
  guard.stdio[3]?.on('data', (chunk: Buffer) => {
    status += chunk.toString()
  })
  // The guard may end while it is written to.
  guard.stdin.on('error', () => {})

  const metrics = createJsonLineFollower(bridge.metricsFile, (value) => {
    const line = parseMetricsLine(value)
    if (line) onMetrics?.(line)
  })
  const timer = setInterval(() => void metrics.poll().catch(() => {}), metricsEveryMs)
  let stopped = false

  async function finish(): Promise<TrainerExit> {
    await exited
    const parsedStatus = statusLine.safeParse(parseJson(status))
    // A guard that has reported no status was killed, so the processes that it would have ended still run and hold the console.
    if (!parsedStatus.success) {
      await sweepTrainer({ python, bridgeDirectory, incarnations: [incarnation] })
      if (command.temporary !== null) rmSync(command.temporary, { recursive: true, force: true })
    }
    const giveUp = setTimeout(() => {
      for (const stream of guard.stdio) stream?.destroy()
    }, closeMs)
    await closed
    clearTimeout(giveUp)
    clearInterval(timer)
    await metrics.poll().catch(() => {})
    await metrics.close()
    log.close()
    const { code, signal } = parsedStatus.success ? parsedStatus.data : { code: null, signal: guard.signalCode }
    const failed = !stopped && code !== 0
    return { code, signal, stopped, error: failed ? toError({ code, signal, tail }, options) : null }
  }
  const ended = finish()

  return {
    pid: guard.pid as number,
    ended,
    async stop() {
      if (guard.exitCode === null && guard.signalCode === null) {
        stopped = true
        guard.stdin.end('stop\n')
        const limit = deadlines.interruptMs + deadlines.terminateMs + deadlines.graceMs + 30_000
        const killer = setTimeout(() => killGroup(guard.pid), limit)
        await ended.finally(() => clearTimeout(killer))
      }
      return await ended
    },
  }
}

export interface SweepTrainerOptions {
  readonly python: string
  readonly bridgeDirectory: string
  readonly incarnations: readonly string[]
}

/**
 * Ends processes that earlier starts of a trainer left because their guard was also killed. Only processes that carry one of the ids
 * in their environment are ended.
 */
export async function sweepTrainer({ python, bridgeDirectory, incarnations }: SweepTrainerOptions): Promise<void> {
  for (const incarnation of incarnations) {
    const sweep = spawn(python, ['-I', guardScript(bridgeDirectory), '--sweep', ...markerOf(incarnation)], {
      stdio: 'ignore',
      timeout: 30_000,
    })
    await new Promise<void>((resolve) => sweep.once('close', () => resolve()).once('error', () => resolve()))
  }
}

function killGroup(pid: number | undefined): void {
  if (pid === undefined) return
  try {
    process.kill(process.platform === 'win32' ? pid : -pid, 'SIGKILL')
  } catch {}
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

interface BadEnd {
  readonly code: number | null
  readonly signal: string | null
  readonly tail: readonly string[]
}

function toError({ code, signal, tail }: BadEnd, { trainer, bridge, console }: LaunchTrainerOptions): TrainError {
  const how = code === null ? `was ended by ${signal ?? 'a signal'}` : `ended with exit code ${code}`
  const log = consoleFileOf(bridge.path, trainer)
  const details = { code, signal, log, console: tail }
  const failure = console.failure()
  if (failure)
    return new TrainError(failure.code, `${failure.message} (${trainer} ${how}; its console is in ${log})`, {
      details: { ...details, line: failure.line },
    })
  const died = code === null
  return new TrainError(
    died ? 'TRAINER_PROCESS_DIED' : 'TRAINER_FAILED',
    `${trainer} ${how} without naming a reason; read ${log}${died ? ', then run the same command again: the run resumes from its last checkpoint' : ''}.`,
    { details },
  )
}
