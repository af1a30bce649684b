import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { ChannelHealth, Engine, HealthSample, RunEvent } from '@aworld-train/core'
import type { ChannelServer, InProcessRolloutRunner } from '@aworld-train/rollout'
import { healthEveryMs, type OwnedRunStore } from '@aworld-train/store'
import type { CallCounters } from './run-accounts.ts'
import { createSilenceWatch } from './silence-watch.ts'

export interface HealthSources {
  readonly gateway: CallCounters['gateway']
  readonly runner: Pick<InProcessRolloutRunner, 'counts' | 'workers' | 'slots' | 'oldest'>
  /** Engines of the policies, by model name. */
  readonly engines: Readonly<Record<string, Pick<Engine, 'health' | 'weightVersion'>>>
  /** `null` if no trainer connects. */
  readonly channel: Pick<ChannelServer, 'counts'> | null
}

/** Interval in milliseconds at which the event loop is observed. The time that a timer of an idle loop takes is no delay. */
const resolutionMs = 20

export interface HealthWatchOptions {
  readonly store: Pick<OwnedRunStore, 'keepHealth'>
  readonly sources: HealthSources
  readonly emit: (event: RunEvent) => void
}

/** Keeps the health of this process every two seconds until `stack` ends, and once more then. Warns when no rollout comes to an end. */
export function watchHealth(stack: AsyncDisposableStack, { store, sources, emit }: HealthWatchOptions): void {
  const lookForSilence = createSilenceWatch(sources.runner, (message) =>
    emit({ type: 'warning-raised', at: Date.now(), code: 'ROLLOUTS_SILENT', message }),
  )
  const eventLoop = monitorEventLoopDelay({ resolution: resolutionMs })
  eventLoop.enable()
  let timerAt = performance.now() + healthEveryMs

  function delays(): HealthSample['eventLoopMs'] {
    const late = (nanoseconds: number) => Math.max(0, nanoseconds / 1e6 - resolutionMs)
    // Only this timer sees a block that begins right when the monitor is reset.
    const most = Math.max(late(eventLoop.max), performance.now() - timerAt, 0)
    const p99 = Math.min(most, late(eventLoop.percentile(99)))
    eventLoop.reset()
    timerAt = performance.now() + healthEveryMs
    return { p99, most }
  }

  function keep(): void {
    const { queued, running, retries } = sources.runner.counts()
    const engines = Object.entries(sources.engines).map(([name, engine]) => {
      const health = engine.health?.() ?? { ready: true, reason: null, replicas: [] }
      return [name, { ...health, weightVersion: engine.weightVersion() }] as const
    })
    const sample: HealthSample = {
      at: Date.now(),
      queued,
      running,
      retries,
      calls: sources.gateway.counts().inFlight,
      eventLoopMs: delays(),
      memoryBytes: process.memoryUsage.rss(),
      engines: Object.fromEntries(engines),
      channel: sources.channel && channelHealth(sources.channel),
    }
    // An error of the store reaches those who need the store.
    store.keepHealth(sample, sources.runner.workers.rows()).catch(() => {})
  }

  keep()
  const timer = setInterval(() => {
    keep()
    lookForSilence()
  }, healthEveryMs)
  stack.defer(() => {
    clearInterval(timer)
    keep()
    eventLoop.disable()
  })
}

function channelHealth(channel: Pick<ChannelServer, 'counts'>): ChannelHealth {
  const { workers, open, calls, reconnects, lost, rejected } = channel.counts()
  return { workers, open, calls, reconnects, lost, rejected }
}
