import { type ConsoleReader, TrainError, type TrainerPlan, toTrainError } from '@aworld-train/core'
import { watchdogTimeoutMs } from '@aworld-train/training'
import { consoleFileOf, launchTrainer, type TrainerExit } from '../process/launch-trainer.ts'
import { metricsFileOf } from '../process/metrics-file.ts'
import { bridgeDirectory } from '../python-package.ts'
import type { TrainerProgress } from './progress.ts'
import type { PythonTrainingPlan } from './training-plan.ts'

export interface FollowTrainerOptions {
  readonly plan: PythonTrainingPlan
  readonly planned: TrainerPlan
  /** The address of the channel, as in the stage. */
  readonly address: { readonly url: string; readonly tokenFile: string }
  /** The run directory. */
  readonly path: string
  readonly name: string
  readonly incarnation: string
  readonly progress: Pick<TrainerProgress, 'line' | 'metrics'>
  readonly watch: RunWatch
  readonly signal: AbortSignal
}

/** Ends a framework for a reason other than the user's wish: an error on this side, or a long time without activity. */
export interface RunWatch {
  /** Ends the framework. The first error counts. */
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

/** Launches the framework and resolves to its end. The signal, or an error of this side, ends it. */
export async function followTrainer(options: FollowTrainerOptions): Promise<TrainerExit> {
  const { plan, planned, address, path, name, incarnation, progress, watch, signal } = options
  const { trainer, config } = plan
  const python = plan.python.path
  const silentMs = watchdogTimeoutMs(config.settings)
  signal.throwIfAborted()
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
  const bridge = {
    run: name,
    incarnation,
    path,
    channelUrl: address.url,
    tokenFile: address.tokenFile,
    metricsFile: metricsFileOf(path, incarnation),
    bridgeDirectory,
  }
  const console: ConsoleReader = trainer.output.createConsoleReader()
  const launched = await launchTrainer({
    trainer: trainer.name,
    python,
    command: trainer.command(planned, { python, bridge, inherited: process.env }),
    bridge,
    console,
    onLine: taking(progress.line),
    onMetrics: taking(progress.metrics),
  })
  const ending = AbortSignal.any([signal, watch.failed])
  const stop = () => void launched.stop()
  ending.addEventListener('abort', stop, { once: true })
  if (ending.aborted) stop()
  const timer = setInterval(
    () => {
      if (Date.now() - watch.lastAlive() > silentMs) watch.fail(silent(trainer.name, path, silentMs))
      const failure = console.stuck?.()
      if (failure) watch.fail(failure)
    },
    Math.min(silentMs, 5_000),
  )
  try {
    const exit = await launched.ended
    return watch.failed.aborted ? { ...exit, stopped: false, error: watch.failed.reason as TrainError } : exit
  } finally {
    clearInterval(timer)
    ending.removeEventListener('abort', stop)
  }
}

function silent(trainer: string, path: string, ms: number): TrainError {
  return new TrainError(
    'TRAINER_PROCESS_DIED',
    `${trainer} has said nothing and no rollout has moved for ${Math.round(ms / 1000)} seconds, so it was ended; read ${consoleFileOf(path, trainer)}, then run the same command again: the run resumes from its last checkpoint. Where a step takes longer, raise watchdogTimeoutMs.`,
  )
}
