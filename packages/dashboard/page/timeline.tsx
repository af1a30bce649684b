// Calls over time: a row for each call, and above them a lane for each agent.
import type { InvocationTrace, RolloutRow } from '@aworld-train/core'
import { type Call, stretchAt } from './calls.ts'
import { seconds, visible } from './format.ts'
import { Middle, Stretch } from './ui.tsx'

/** Rows that are drawn at once. */
const mostRows = 80

interface BarProps {
  readonly call: Call
  /** Milliseconds of the whole time line. */
  readonly total: number
  /** End of the call before it. */
  readonly waitFrom?: number | undefined
}
function Bar({ call, total, waitFrom }: BarProps) {
  const at = (ms: number) => `${(100 * ms) / total}%`
  return (
    <>
      {waitFrom !== undefined && <i class="wait" style={{ left: at(waitFrom), width: at(Math.max(0, call.at - waitFrom)) }} />}
      <i
        class={call.note === 'error' ? `${call.lane} error` : call.lane}
        style={{ left: at(call.at), width: `max(3px, ${at(call.ms)})` }}
      />
    </>
  )
}

/** The parts of a rollout's time. */
export function TimeParts({ waitMs, end }: { waitMs: RolloutRow['waitMs']; end: number }) {
  return (
    <>
      {seconds(end)} = {waitMs.queue >= 0.5 && <>queue {seconds(waitMs.queue)} + </>}
      <span class="m-model">model {seconds(waitMs.engine)}</span> + <span class="m-tool">tools {seconds(waitMs.tools)}</span> + rest{' '}
      {seconds(waitMs.agent)}
    </>
  )
}

interface LanesProps {
  readonly agents: readonly InvocationTrace[]
  readonly shown: string | undefined
  readonly calls: readonly Call[]
  readonly end: number
  readonly pick: (id: string) => void
}
function Lanes({ agents, shown, calls, end, pick }: LanesProps) {
  const callsOf = Map.groupBy(calls, ({ agent }) => agent)
  return (
    <ul class="lanes" aria-label="Agents">
      {agents.map(({ agent }) => {
        const own = callsOf.get(agent) ?? []
        return (
          <li key={agent}>
            <button
              type="button"
              aria-pressed={shown === agent}
              class={shown === agent ? 'chosen' : ''}
              onClick={() => pick(own[0]?.id ?? '')}
            >
              <span class="who" title={visible(agent)}>
                <Middle text={visible(agent)} end={10} />
              </span>
              <span class="lane">
                {own.map((call) => (
                  <Bar key={call.id} call={call} total={end} />
                ))}
              </span>
              <span class="ms">{seconds(own.reduce((sum, { ms }) => sum + ms, 0))}</span>
            </button>
          </li>
        )
      })}
    </ul>
  )
}

interface TimelineProps {
  readonly agents: readonly InvocationTrace[]
  readonly calls: readonly Call[]
  readonly current: Call | undefined
  /** The agent whose conversation is shown. */
  readonly shown: string | undefined
  /** Milliseconds from the beginning to the end. */
  readonly end: number
  readonly pick: (id: string) => void
}
export function Timeline({ agents, calls, current, shown, end, pick }: TimelineProps) {
  const { from, shown: rows } = stretchAt(calls, current ? calls.indexOf(current) : 0, mostRows)
  const lastOf = new Map<string, number>()
  for (const { agent, at, ms } of calls.slice(0, from)) lastOf.set(agent, at + ms)
  return (
    <>
      {(agents.length > 1 || calls.length > rows.length) && <Lanes agents={agents} shown={shown} calls={calls} end={end} pick={pick} />}
      <Stretch name="calls" from={from} count={rows.length} total={calls.length} go={(place) => pick(calls[place]!.id)} />
      <ol>
        {rows.map((call) => {
          const waitFrom = lastOf.get(call.agent)
          lastOf.set(call.agent, call.at + call.ms)
          return (
            <li key={call.id}>
              <button type="button" class={call === current ? 'chosen' : ''} aria-pressed={call === current} onClick={() => pick(call.id)}>
                <span class="who" title={visible(call.name)}>
                  <b>{call.lane === 'model' ? call.turn! + 1 : '↳'}</b> <Middle text={visible(call.name)} end={10} />
                </span>
                <span class="lane">
                  <Bar call={call} total={end} waitFrom={waitFrom} />
                </span>
                <span class="ms">{seconds(call.ms)}</span>
                <span class="note">{visible(call.note)}</span>
              </button>
            </li>
          )
        })}
      </ol>
      {calls.length > 0 ? (
        <p class="axis" key={calls.length}>
          <span>0</span>
          <span>{seconds(end / 2)}</span>
          <span>{seconds(end)}</span>
        </p>
      ) : (
        <p class="quiet">No model call was recorded.</p>
      )}
    </>
  )
}
