import { spawn } from 'node:child_process'
import { mkdirSync, rmSync } from 'node:fs'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { TrainError } from '@aworld-train/protocol'
import { z } from 'zod'
import { formatOverride } from '../config/hydra-override.ts'
import { exportedVariables, workerEnvironment, workerVariables } from '../config/worker-variables.ts'
import { plainLine, readLines } from './console-line.ts'
import { createConsoleLog } from './console-log.ts'
import { createJsonLineFollower } from './follow-json-lines.ts'
import { metricsFileOf, parseMetricsLine } from './metrics-file.ts'
import { toVerlEnvironment } from './verl-environment.ts'
import { createFailureReader } from './verl-failures.ts'
import type { LaunchVerlOptions, StopDeadlines, VerlExit, VerlProcess } from './verl-process.ts'
import { workerInterpreter } from './worker-interpreter.ts'

export const defaultStopDeadlines: StopDeadlines = { interruptMs: 15_000, terminateMs: 10_000, graceMs: 5_000 }

const statusLine = z.object({ code: z.int().nullable(), signal: z.string().nullable() })

const incarnationVariable = 'AWORLD_TRAIN_INCARNATION'
const metricsEveryMs = 250
/** How long the console may stay open after the guard has ended, where another process holds it. */
const closeMs = 5_000

const temporaryOf = (rayDirectory: string) => join(rayDirectory, 'tmp')

/** verl leaves a lock file for every part of a checkpoint in the folder of temporary files; what torch compiles stays for the next run. */
function temporaryFiles(rayDirectory: string | null, environment: Readonly<Record<string, string>>): Record<string, string> {
  if (rayDirectory === null) return environment
  const compiled = join(tmpdir(), `torchinductor_${userInfo().username.replace(/[\\/:*?"<>|]/g, '_')}`)
  const cache: Record<string, string> =
    environment['TORCH_COMPILE_DISABLE'] === '1' ? {} : { TORCHINDUCTOR_CACHE_DIR: process.env['TORCHINDUCTOR_CACHE_DIR'] ?? compiled }
  return { TMPDIR: temporaryOf(rayDirectory), ...cache, ...environment }
}

const guardScript = (bridgeDirectory: string) => join(bridgeDirectory, 'aworld_train_bridge', 'launch.py')

/**
 * Starts verl in a process group of its own, behind a guard that ends the whole group, Ray's processes included, when this
 * process dies. Throws TRAINER_ENVIRONMENT where Python cannot be started.
 */
export async function launchVerl(options: LaunchVerlOptions): Promise<VerlProcess> {
  const { python, path, incarnation, bridgeDirectory, rayDirectory, onLine, onMetrics } = options
  const deadlines = { ...defaultStopDeadlines, ...options.deadlines }
  const metricsFile = metricsFileOf(path, incarnation)
  mkdirSync(join(path, 'metrics'), { recursive: true })
  if (rayDirectory !== null) mkdirSync(temporaryOf(rayDirectory), { recursive: true, mode: 0o700 })
  const environment = toVerlEnvironment(options.inherited ?? process.env, temporaryFiles(rayDirectory, options.environment ?? {}), {
    run: options.run,
    incarnation,
    path,
    channelUrl: options.channel.url,
    tokenFile: options.channel.tokenFile,
    metricsFile,
    bridgeDirectory,
  })
  const overrides = [
    ...options.overrides,
    ...workerInterpreter(python, options.overrides),
    ...workerOverrides(environment, options.environment),
  ]
  const command = options.command ?? [python, '-m', 'verl.trainer.main_ppo', ...overrides]
  const guard = spawn(
    python,
    [
      ...['-I', guardScript(bridgeDirectory), '--marker', `${incarnationVariable}=${incarnation}`],
      ...['--interrupt-s', String(deadlines.interruptMs / 1000), '--terminate-s', String(deadlines.terminateMs / 1000)],
      ...['--grace-s', String(deadlines.graceMs / 1000)],
      ...(rayDirectory === null ? [] : ['--remove', rayDirectory]),
      '--',
      ...command,
    ],
    { cwd: path, env: environment, detached: process.platform !== 'win32', stdio: ['pipe', 'pipe', 'pipe', 'pipe'] },
  )
  await new Promise<void>((resolve, reject) => {
    guard.once('spawn', resolve)
    guard.once('error', (cause) =>
      reject(
        new TrainError('TRAINER_ENVIRONMENT', `${python} cannot be started: ${cause.message}. Run "aworld-train setup verl".`, { cause }),
      ),
    )
  })
  const exited = Promise.all([
    new Promise((resolve) => guard.once('exit', resolve)),
    new Promise((resolve) => (guard.stdio[3] as NodeJS.ReadableStream).once('close', resolve)),
  ])
  const closed = new Promise<void>((resolve) => guard.once('close', () => resolve()))
  const log = createConsoleLog(join(path, 'verl.log'))
  const failures = createFailureReader()
  for (const stream of [guard.stdout, guard.stderr]) {
    readLines(stream, (raw) => {
      const line = plainLine(raw)
      log.write(line)
      failures.read(line)
      onLine?.(line)
    })
  }
  let status = ''
  guard.stdio[3]?.on('data', (chunk: Buffer) => {
    status += chunk.toString()
  })
  // The guard may end while it is written to.
  guard.stdin.on('error', () => {})

  const metrics = createJsonLineFollower(metricsFile, (value) => {
    const line = parseMetricsLine(value)
    if (line) onMetrics?.(line)
  })
  const timer = setInterval(() => void metrics.poll().catch(() => {}), metricsEveryMs)
  let stopped = false

  async function finish(): Promise<VerlExit> {
    await exited
    const parsedStatus = statusLine.safeParse(parseJson(status))
    // A guard that has reported no status was killed, so the processes that it would have ended still run and hold the console.
    if (!parsedStatus.success) {
      await sweepVerl({ python, bridgeDirectory, incarnations: [incarnation] })
      if (rayDirectory !== null) rmSync(rayDirectory, { recursive: true, force: true })
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
    return { code, signal, stopped, error: failed ? toError({ code, signal, path, failures }) : null }
  }
  const ended = finish()

  return {
    incarnation,
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

export interface SweepVerlOptions {
  readonly python: string
  readonly bridgeDirectory: string
  readonly incarnations: readonly string[]
}

/** Ends processes that earlier starts of verl left because their guard was killed too; only those that carry one of the ids in their environment. */
export async function sweepVerl({ python, bridgeDirectory, incarnations }: SweepVerlOptions): Promise<void> {
  for (const incarnation of incarnations) {
    const sweep = spawn(python, ['-I', guardScript(bridgeDirectory), '--sweep', '--marker', `${incarnationVariable}=${incarnation}`], {
      stdio: 'ignore',
      timeout: 30_000,
    })
    await new Promise<void>((resolve) => sweep.once('close', () => resolve()).once('error', () => resolve()))
  }
}

/** Overrides for the variables of workers, with plain values: verl 0.9 passes Ray's runtime environment on without resolving references in it. */
function workerOverrides(environment: Readonly<Record<string, string>>, ownVariables: Readonly<Record<string, string>> = {}): string[] {
  return [...exportedVariables(ownVariables), ...workerVariables].map((name) =>
    formatOverride(`${workerEnvironment}.${name}`, environment[name] ?? '', '++'),
  )
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

interface EndOfVerl {
  readonly code: number | null
  readonly signal: string | null
  readonly path: string
  readonly failures: ReturnType<typeof createFailureReader>
}

function toError({ code, signal, path, failures }: EndOfVerl): TrainError {
  const how = code === null ? `was ended by ${signal ?? 'a signal'}` : `ended with exit code ${code}`
  const log = join(path, 'verl.log')
  const details = { code, signal, log, console: failures.tail() }
  const failure = failures.failure()
  if (failure)
    return new TrainError(failure.code, `${failure.message} (verl ${how}; its console is in ${log})`, {
      details: { ...details, line: failure.line },
    })
  const died = code === null
  return new TrainError(
    died ? 'TRAINER_PROCESS_DIED' : 'TRAINER_FAILED',
    `verl ${how} without naming a reason; read ${log}${died ? ', then run the same command again: the run resumes from its last checkpoint' : ''}.`,
    { details },
  )
}
