// Calls over time: a row for each call of an invocation, and above them a lane for each invocation.
import type { RolloutRow } from '@aworld-train/core'
import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import { type Call, stretchAt } from './calls.ts'
import { integer, seconds, visible } from './format.ts'
import { type Lane, mostAtOnce } from './lanes.ts'
import { Middle, Stretch } from './ui.tsx'

/** Rows, and lanes, that are drawn at once. */
const mostRows = 80
const mostLanes = 120
/** A lane that is farther in is not indented any more. */
const deepest = 6

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
        class={`${call.lane}${call.isStart ? ' start' : ''}${call.note === 'error' ? ' error' : ''}`}
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

/** How many invocations there are, how much they do at once, and the choice among them. */
export function Invocations({ count, calls, children }: { count: number; calls: readonly Call[]; children: ComponentChildren }) {
  const atOnce = mostAtOnce(calls.filter(({ lane }) => lane === 'model'))
  return (
    <div class="invocations">
      <p>
        <b>{integer(count)}</b> invocations, at most <b>{integer(atOnce)}</b> model {atOnce === 1 ? 'call' : 'calls'} at once
      </p>
      {children}
    </div>
  )
}

interface LanesProps {
  readonly lanes: readonly Lane[]
  /** Calls of each invocation. */
  readonly byInvocation: ReadonlyMap<string, readonly Call[]>
  /** The invocation whose conversation is shown. */
  readonly shown: string | undefined
  /** Milliseconds from the beginning to the end. */
  readonly end: number
  readonly show: (invocation: string) => void
}
function Lanes({ lanes, byInvocation, shown, end, show }: LanesProps) {
  const list = useRef<HTMLUListElement>(null)
  const { from, shown: drawn } = stretchAt(
    lanes,
    lanes.findIndex(({ invocation }) => invocation.id === shown),
    mostLanes,
  )
  const at = (ms: number) => `${(100 * ms) / end}%`
  useLayoutEffect(() => {
    const lane = list.current?.querySelector<HTMLElement>('.chosen')?.parentElement
    if (!list.current || !lane) return
    const { offsetTop, offsetHeight } = lane
    const { scrollTop, clientHeight } = list.current
    if (offsetTop < scrollTop || offsetTop + offsetHeight > scrollTop + clientHeight) list.current.scrollTop = offsetTop - clientHeight / 2
  }, [shown, lanes])
  return (
    <>
      <Stretch name="invocations" from={from} count={drawn.length} total={lanes.length} go={(place) => show(lanes[place]!.invocation.id)} />
      <ul class={`lanes${drawn.length > 12 ? ' many' : ''}`} aria-label="Invocations" ref={list}>
        {drawn.map(({ invocation: { id, agent, depth }, detail, at: began, ms, joins }, index) => (
          <li key={id} style={{ '--depth': Math.min(depth, deepest) }}>
            <button type="button" aria-pressed={shown === id} class={shown === id ? 'chosen' : ''} onClick={() => show(id)}>
              <span class="who" title={visible(id)}>
                {depth > 0 && <span class="unseen">level {depth + 1} </span>}
                <Middle text={visible(agent)} end={10} />
                {detail !== '' && <small>{visible(detail)}</small>}
              </span>
              <span class="lane">
                {joins.map(({ rows, at: when }, number) => {
                  const height = Math.max(-(drawn.length - 1 - index), Math.min(rows, index))
                  const drop = `calc(var(--row) * ${Math.abs(height)})`
                  const span = { left: at(Math.min(when, began ?? when)), width: at(Math.abs((began ?? when) - when)) }
                  return <i key={number} class={`join${height < 0 ? ' up' : ''}`} style={{ ...span, '--drop': drop }} />
                })}
                {began !== null && <i class="life" style={{ left: at(began), width: `max(1px, ${at(ms)})` }} />}
                {byInvocation.get(id)?.map((call) => (
                  <Bar key={call.id} call={call} total={end} />
                ))}
              </span>
              <span class="ms">{began === null ? <small>no call</small> : seconds(ms)}</span>
            </button>
          </li>
        ))}
      </ul>
    </>
  )
}

interface TimelineProps extends LanesProps {
  /** Number of all invocations, also of those that have no lane under the chosen agent. */
  readonly invocations: number
  /** Those of the shown invocation. */
  readonly calls: readonly Call[]
  readonly current: Call | undefined
  readonly pick: (call: string) => void
}
export function Timeline({ invocations, calls, current, pick, ...lanes }: TimelineProps) {
  const { from, shown: rows } = stretchAt(calls, current ? calls.indexOf(current) : 0, mostRows)
  let waitFrom = from > 0 ? endOf(calls[from - 1]!) : undefined
  const { end } = lanes
  return (
    <>
      {(invocations > 1 || calls.length > rows.length) && <Lanes {...lanes} />}
      <Stretch name="calls" from={from} count={rows.length} total={calls.length} go={(place) => pick(calls[place]!.id)} />
      <ol>
        {rows.map((call) => {
          const waited = waitFrom
          waitFrom = endOf(call)
          return (
            <li key={call.id}>
              <button type="button" class={call === current ? 'chosen' : ''} aria-pressed={call === current} onClick={() => pick(call.id)}>
                <span class="who" title={visible(call.name)}>
                  <b>{call.lane === 'model' ? call.turn! + 1 : '↳'}</b> <Middle text={visible(call.name)} end={10} />
                </span>
                <span class="lane">
                  <Bar call={call} total={end} waitFrom={waited} />
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

const endOf = ({ at, ms }: Call) => at + ms
