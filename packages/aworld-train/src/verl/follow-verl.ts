import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { TrainError, toTrainError } from '@aworld-train/protocol'
import {
  clusterAddress,
  createWorkerStart,
  formatOverride,
  launchVerl,
  type VerlExit,
  type VerlPlan,
  type VerlProgress,
  watchdogTimeoutMs,
  withoutOwnRay,
} from '@aworld-train/trainer-verl'

export interface FollowVerlOptions {
  readonly python: string
  readonly verlPlan: VerlPlan
  /** The address of the channel, as the stage has it. */
  readonly address: { readonly url: string; readonly tokenFile: string }
  /** The run directory. */
  readonly path: string
  readonly name: string
  readonly incarnation: string
  readonly progress: Pick<VerlProgress, 'line' | 'metrics'>
  readonly watch: RunWatch
  readonly signal: AbortSignal
}

/** Ends verl for other reasons than the user's wish: an error on this side, or a time without any activity. */
export interface RunWatch {
  /** Ends verl; the first error counts. */
  fail(error: unknown): void
  /** Reports activity. */
  alive(): void
  readonly failed: AbortSignal
  readonly lastAlive: () => number
}

export function createRunWatch(): RunWatch {
  const controller = new AbortController()
  let last = Date.now()
  return {
    fail: (error) => controller.abort(toTrainError(error, 'TRAINER_FAILED')),
    alive: () => {
      last = Date.now()
    },
    failed: controller.signal,
    lastAlive: () => last,
  }
}

/** Launches verl and resolves with its end, which the signal brings about, or an error of this side. */
export async function followVerl(options: FollowVerlOptions): Promise<VerlExit> {
  const { python, verlPlan, address, path, name, incarnation, progress, watch, signal } = options
  const silentMs = watchdogTimeoutMs(verlPlan.settings)
  signal.throwIfAborted()
  const joins = clusterAddress(process.env['RAY_ADDRESS']) !== null
  const rayDirectory = joins ? null : join(shortTemporary(tmpdir()), `aworld-train-ray-${incarnation.slice(0, 8)}`)
  const taking =
    <T>(take: (value: T) => void) =>
    (value: T) => {
      watch.alive()
      try {
        take(value)
      } catch (error) {
        watch.fail(error)
      }
    }
  const workers = createWorkerStart()
  const verl = await launchVerl({
    python,
    overrides: [...(joins ? withoutOwnRay(verlPlan.overrides) : verlPlan.overrides), ...launchOverrides(path, rayDirectory)],
    path,
    run: name,
    incarnation,
    channel: address,
    environment: verlPlan.environment,
    bridgeDirectory: verlPlan.run.bridgeDirectory,
    rayDirectory,
    onLine: taking((line) => {
      workers.read(line)
      progress.line(line)
    }),
    onMetrics: taking((line) => progress.metrics(line)),
  })
  const ending = AbortSignal.any([signal, watch.failed])
  const stop = () => void verl.stop()
  ending.addEventListener('abort', stop, { once: true })
  if (ending.aborted) stop()
  const timer = setInterval(
    () => {
      if (Date.now() - watch.lastAlive() > silentMs) watch.fail(silent(path, silentMs))
      const failure = workers.failure()
      if (failure) watch.fail(failure)
    },
    Math.min(silentMs, 5_000),
  )
  try {
    const exit = await verl.ended
    return watch.failed.aborted ? { ...exit, stopped: false, error: watch.failed.reason as TrainError } : exit
  } finally {
    clearInterval(timer)
    ending.removeEventListener('abort', stop)
  }
}

function silent(path: string, ms: number): TrainError {
  return new TrainError(
    'TRAINER_PROCESS_DIED',
    `verl has said nothing and no rollout has moved for ${Math.round(ms / 1000)} seconds, so it was ended; read ${join(path, 'verl.log')}, then run the same command again: the run resumes from its last checkpoint. Where a step takes longer, raise aworldTrain.watchdogTimeoutMs.`,
  )
}

/** A path of a socket has at most 107 bytes, and Ray's (2.60) have 90 below the folder that its own lies in. */
export function shortTemporary(folder: string): string {
  return Buffer.byteLength(folder) + 90 <= 107 ? folder : '/tmp'
}

/** Settings of this start of verl that no run script contains: where Hydra and Ray put their files. */
function launchOverrides(path: string, rayDirectory: string | null): string[] {
  return [
    formatOverride('hydra.run.dir', join(path, 'hydra')),
    ...(rayDirectory === null ? [] : [formatOverride('ray_kwargs.ray_init._temp_dir', rayDirectory, '++')]),
  ]
}
