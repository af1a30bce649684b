// The health of a run's process, current or as last recorded.
import type { HealthSample, RunHealth, RunSummary } from '@aworld-train/core'
import { signal } from '@preact/signals'
import { useEffect, useRef, useState } from 'preact/hooks'
import { SmallChart } from './chart.tsx'
import { clientOf } from './data.ts'
import { integer, seconds, visible } from './format.ts'
import type { Multiple } from './multiples.ts'
import { route } from './route.ts'
import { Facts, Section } from './ui.tsx'
import { Workers } from './workers.tsx'

/** After this many missing samples a process counts as blocked or gone. */
const silentSamples = 5

interface Measured extends RunHealth {
  /** The reason why the last reading failed. */
  readonly error: string | null
}

/** The samples of the run on screen, which are read again while it goes on; `null` until they have arrived. */
export function useHealth({ status, health: { everyMs, keptMs } }: RunSummary): Measured | null {
  const { run } = route.value
  const [measured, show] = useState<Measured | null>(null)
  const isLive = status === 'running'
  const latest = useRef<RunHealth & { readonly run: string }>({ run, samples: [], workers: [] })
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined
    let isOpen = true
    async function read(before: RunHealth): Promise<void> {
      let error: string | null = null
      const fresh = await clientOf(run)
        .health(before.samples.at(-1)?.at ?? 0)
        .catch((problem: Error) => {
          error = problem.message
          return { samples: [], workers: before.workers }
        })
      if (!isOpen) return
      const all = [...before.samples, ...fresh.samples]
      const health = { samples: all.filter(({ at }) => at > all.at(-1)!.at - keptMs), workers: fresh.workers }
      latest.current = { run, ...health }
      show({ ...health, error })
      if (isLive) timer = setTimeout(() => void read(health), everyMs)
    }
    // The server of a run may end with it, so data that was read while the run went on is kept.
    void read(latest.current.run === run ? latest.current : { samples: [], workers: [] })
    return () => {
      isOpen = false
      clearTimeout(timer)
    }
  }, [run, isLive])
  return measured
}

/** Place of the sample under the pointer. */
const hovered = signal<number | null>(null)
const megabytes = (bytes: number) => `${integer(bytes / 1e6)} MB`
const lines: readonly (readonly [read: (sample: HealthSample) => number, line: Omit<Multiple, 'values'>])[] = [
  [({ queued }) => queued, { name: 'Waiting', note: 'rollouts', format: integer }],
  [({ running }) => running, { name: 'Running', note: 'rollouts', format: integer }],
  [({ calls }) => calls, { name: 'Model calls', note: 'under way', format: integer }],
  [({ eventLoopMs }) => eventLoopMs.p99, { name: 'Event loop', note: 'late, p99', format: seconds }],
  [({ memoryBytes }) => memoryBytes, { name: 'Memory', note: 'resident', format: megabytes }],
]

interface Point {
  readonly at: number
  readonly sample: HealthSample | null
}

/** Breaks the line between two processes of the run, where nothing was measured. */
function pointsOf(samples: readonly HealthSample[], silentMs: number): Point[] {
  return samples.flatMap((sample, index) => {
    const gap = index > 0 && sample.at - samples[index - 1]!.at > silentMs
    return gap
      ? [
          { at: sample.at - 1, sample: null },
          { at: sample.at, sample },
        ]
      : [{ at: sample.at, sample }]
  })
}

function Lines({ points }: { points: readonly Point[] }) {
  const { at: first } = points[0]!
  const length = seconds(points.at(-1)!.at - first)
  return (
    <div>
      {lines.map(([read, line]) => (
        <SmallChart
          key={line.name}
          multiple={{ ...line, zero: true, values: points.map(({ sample }) => sample && read(sample)) }}
          label={`${line.name} over ${length}`}
          xs={points.map(({ at }) => (at - first) / 1_000)}
          xUnit="process"
          hovered={hovered}
        />
      ))}
    </div>
  )
}

function Engines({ engines, channel }: HealthSample) {
  const hasServers = Object.values(engines).some(({ replicas }) => replicas.length > 0)
  return (
    <table class="rows plain">
      <thead>
        <tr>
          <th scope="col">engine</th>
          <th scope="col">state</th>
          {hasServers && <th scope="col">calls</th>}
          {hasServers && <th scope="col">waiting</th>}
        </tr>
      </thead>
      <tbody>
        {Object.entries(engines).flatMap(([model, { ready, reason, weightVersion, replicas }]) => [
          <tr key={model}>
            <th scope="row">
              {visible(model)}
              <small>
                {' '}
                weights v{weightVersion},{' '}
                {replicas.length > 0 ? `servers: ${replicas.length}` : channel ? 'sampled by the trainer' : 'in this process'}
              </small>
            </th>
            <td class={ready ? '' : 'down'}>{ready ? 'takes calls' : visible(reason ?? 'takes no calls')}</td>
            {hasServers && <td colSpan={2} />}
          </tr>,
          ...replicas.map(({ name, inFlight, queued, oldestQueuedMs, ...replica }) => (
            <tr key={`${model} ${name}`}>
              <td class="replica">{visible(name)}</td>
              <td class={replica.ready ? '' : 'down'}>{replica.ready ? 'takes calls' : `out: ${replica.reason}`}</td>
              <td>{integer(inFlight)}</td>
              <td>{queued > 0 ? `${integer(queued)} for ${seconds(oldestQueuedMs)}` : 0}</td>
            </tr>
          )),
        ])}
      </tbody>
    </table>
  )
}

export function Process({ samples, workers, error, summary }: Measured & { summary: RunSummary }) {
  const last = samples.at(-1)
  if (!last)
    return (
      <Section title="Process" class="process">
        {error === null ? (
          <p class="quiet">This run has no record of how its process was doing.</p>
        ) : (
          <p role="alert">How its process was doing could not be read: {error}</p>
        )}
      </Section>
    )
  const isLive = summary.status === 'running'
  const silentMs = silentSamples * summary.health.everyMs
  const age = Date.now() - last.at
  const isSilent = isLive && age > silentMs
  const points = pointsOf(samples, silentMs)
  const at = hovered.value === null ? null : (points[Math.min(hovered.value, points.length - 1)]?.sample ?? null)
  const clock = new Date((at ?? last).at).toLocaleTimeString('en-GB')
  const { channel } = last
  return (
    <>
      <Section title="Process" class="process multiples" note={<span class="readout">{at || !isLive || isSilent ? clock : 'now'}</span>}>
        <Lines points={points} />
        {isSilent ? (
          <p class="more" role="alert">
            <b class="down">It has said nothing for {seconds(age)}: its event loop is blocked, or it is stopped.</b>
          </p>
        ) : (
          <p class="more">
            {isLive && !at ? 'Now' : `At ${clock}`}: in the {seconds(summary.health.everyMs)} before, the event loop was late by{' '}
            {seconds((at ?? last).eventLoopMs.most)} at most.
          </p>
        )}
      </Section>
      {workers.length > 0 && <Workers workers={workers} at={isLive && !isSilent ? Date.now() : last.at} />}
      <Section title="Engines">
        <Engines {...last} />
      </Section>
      <Section title="Trainer">
        {channel === null ? (
          <p class="quiet">No trainer connects to this process.</p>
        ) : (
          <Facts
            of={[
              ['workers connected', channel.workers === 0 ? <b class="down">none</b> : integer(channel.workers)],
              ['rollouts it waits for', integer(channel.open)],
              ['calls it samples', integer(channel.calls)],
              ['came again', integer(channel.reconnects)],
              ['connections lost', integer(channel.lost)],
              ['rejected', integer(channel.rejected)],
            ]}
          />
        )}
      </Section>
    </>
  )
}
