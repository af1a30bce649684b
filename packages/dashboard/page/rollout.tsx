// One episode: what was called when, and what was said.
import type { AgentTrace, RolloutTrace, RunSummary, TurnTrace } from '@aworld-train/core'
import type { ToolCall, ToolCallRecord } from '@aworld-train/protocol'
import { useState } from 'preact/hooks'
import { leastOfBins } from './bins.ts'
import { fixed, integer, points, probability, prose, seconds, shellWord, visible } from './format.ts'
import { Samples } from './groups.tsx'
import { type Group, partnerOf } from './groups-of.ts'
import { go, hrefs, route } from './route.ts'
import { surprise } from './token-stream.ts'
import { Advantage, Dot, Empty, Facts, Section, Trail, useKeys } from './ui.tsx'
import { useRollout } from './use-rollout.ts'
import { Attempts } from './workers.tsx'

interface Call {
  readonly id: string
  readonly lane: 'model' | 'tool'
  readonly agent: string
  readonly name: string
  readonly at: number
  readonly ms: number
  /** Place of the turn in the agent's turns; `null` for a call that no turn asked for. */
  readonly turn: number | null
  readonly note: string
}

const turnId = (agent: string, turn: TurnTrace) => `${agent}/${turn.index}`
const toolId = (call: ToolCallRecord) => `call/${call.agent}/${call.id}`

function callsOf(trace: RolloutTrace, start: number): Call[] {
  const models = trace.agents.flatMap(({ agent, turns }) =>
    turns.map((turn, index): Call => {
      const { startedAt, endedAt, completionIds, model } = turn
      const note = completionIds.length > 0 ? `${integer(completionIds.length)} tok` : (model ?? '')
      return {
        id: turnId(agent, turn),
        lane: 'model',
        agent,
        name: agent,
        at: startedAt - start,
        ms: endedAt - startedAt,
        turn: index,
        note,
      }
    }),
  )
  const places = new Map(trace.agents.map(({ agent, turns }) => [agent, new Map(turns.map(({ index }, place) => [index, place]))]))
  const tools = trace.toolCalls.map((call): Call => {
    const { agent, name, timing, turn, isError } = call
    const place = turn === null ? null : (places.get(agent)?.get(turn) ?? null)
    return {
      id: toolId(call),
      lane: 'tool',
      agent,
      name,
      at: timing.startedAt - start,
      ms: timing.endedAt - timing.startedAt,
      turn: place,
      note: isError ? 'error' : '',
    }
  })
  return [...models, ...tools].sort((a, b) => a.at - b.at || (a.lane === 'model' ? -1 : 1))
}

function Bar({ call, total, waitFrom }: { call: Call; total: number; waitFrom?: number | undefined }) {
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

/** Arguments of a call: a list where they are an object, else as they were written. */
function Arguments({ text }: { text: string }) {
  let object: Record<string, unknown>
  try {
    object = JSON.parse(text) as Record<string, unknown>
    if (typeof object !== 'object' || object === null || Array.isArray(object)) throw new TypeError('no object')
  } catch {
    return <code>{prose(text)}</code>
  }
  return (
    <dl>
      {Object.entries(object).map(([name, value]) => (
        <div key={name}>
          <dt>{visible(name)}</dt>
          <dd>{prose(typeof value === 'string' ? value : JSON.stringify(value))}</dd>
        </div>
      ))}
    </dl>
  )
}

/** Characters of a text that are shown before it is opened. */
const longText = 4_000
/** Characters of a text that is drawn where it is the address of an image. */
const longImage = 2_000_000
function Text({ text }: { text: string }) {
  const [whole, showWhole] = useState(false)
  const isImage = text.length <= longImage && /^data:image\/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/=\s]+$/.test(text)
  if (isImage) return <Shot src={text} />
  return (
    <p>
      {prose(whole ? text : text.slice(0, longText))}
      {!whole && text.length > longText && (
        <button type="button" class="fold" onClick={() => showWhole(true)}>
          {integer(text.length - longText)} more characters
        </button>
      )}
    </p>
  )
}

const Shot = ({ src }: { src: string }) => <img class="shot" src={src} alt="returned by the tool" />

const stripBins = 120
/** Surprise along a completion: a way to its tokens. */
function Strip({ trace, turn, place, href }: { trace: RolloutTrace; turn: TurnTrace; place: number; href: string }) {
  return (
    <a class="strip" href={href} aria-label={`Tokens of turn ${place + 1}`}>
      {leastOfBins(turn.logprobs, stripBins).map(({ start, value }) => (
        <i key={start} title={`${visible(trace.vocabulary[turn.completionIds[start]!] ?? '')}  ${probability(value)}`}>
          <i class={`p${surprise(value)}`} style={{ height: `${Math.min(100, 12 + 40 * -value)}%` }} />
        </i>
      ))}
    </a>
  )
}

interface TalkProps {
  readonly trace: RolloutTrace
  readonly agent: AgentTrace
  readonly chosen: string | undefined
  readonly choose: (id: string) => void
}

function Talk({ trace, agent, chosen, choose }: TalkProps) {
  const answers = new Map(trace.toolCalls.filter((call) => call.agent === agent.agent).map((call) => [call.id, call]))
  return (
    <>
      {agent.turns.map((turn, place) => {
        const id = turnId(agent.agent, turn)
        const calls: readonly ToolCall[] = turn.message.toolCalls ?? []
        return (
          <div key={turn.index}>
            {turn.branchReasons.length > 0 && place > 0 && <p class="quiet">A new branch: {turn.branchReasons.join(', ')}.</p>}
            {turn.messagesDelta.map((message, index) => {
              const tool = message.toolCallId === undefined ? undefined : answers.get(message.toolCallId)
              const toolChosen = tool && chosen === toolId(tool) ? ' chosen' : ''
              return (
                <article
                  key={index}
                  data-call={tool && toolId(tool)}
                  class={`message ${message.role}${toolChosen}${tool?.isError ? ' error' : ''}`}
                  onClick={() => tool && choose(toolId(tool))}
                >
                  <h3>
                    {message.role}
                    {tool && (
                      <small>
                        {' '}
                        {tool.name}, {seconds(tool.timing.endedAt - tool.timing.startedAt)}
                        {tool.isError && ', error'}
                      </small>
                    )}
                  </h3>
                  {message.content !== null && <Text text={message.content} />}
                  {tool?.images?.map(({ mimeType, data }) => (
                    <Shot key={data} src={`data:${mimeType};base64,${data}`} />
                  ))}
                  {message.toolCalls?.map((call) => (
                    <div class="call" key={call.id}>
                      <b>{visible(call.name)}</b>
                      <Arguments text={call.arguments} />
                    </div>
                  ))}
                </article>
              )
            })}
            <article data-call={id} class={`message assistant${chosen === id ? ' chosen' : ''}`} onClick={() => choose(id)}>
              <h3>
                {agent.agent}{' '}
                <small>
                  turn {place + 1},{' '}
                  {turn.completionIds.length > 0 ? `${integer(turn.completionIds.length)} tokens` : (turn.model ?? 'no tokens')},{' '}
                  {turn.finishReason.unified}
                  {turn.unparsed.length > 0 && `, a call did not parse: ${turn.unparsed.join(', ')}`}
                  {turn.cost !== null && `, $ ${turn.cost.toFixed(4)}`}
                </small>
              </h3>
              {turn.message.reasoning && (
                <details>
                  <summary>Reasoning, {integer(turn.message.reasoning.length)} characters</summary>
                  <Text text={turn.message.reasoning} />
                </details>
              )}
              {turn.message.content && <Text text={turn.message.content} />}
              {calls.map((call) => (
                <div class="call" key={call.id}>
                  <b>{visible(call.name)}</b>
                  <Arguments text={call.arguments} />
                </div>
              ))}
              {turn.logprobs.length > 0 && (
                <Strip
                  trace={trace}
                  turn={turn}
                  place={place}
                  href={hrefs.tokens(trace.row.key, { turn: String(place), ...(trace.agents.length > 1 && { agent: agent.agent }) })}
                />
              )}
            </article>
          </div>
        )
      })}
    </>
  )
}

/** What is known of a rollout whose tokens are not here. */
export function Absent({
  rollout,
  group,
  summary,
  error,
}: {
  rollout: string
  group: Group | null
  summary: RunSummary
  error: string | null
}) {
  const row = group?.rows.find(({ key }) => key === rollout)
  if (error !== null)
    return (
      <Empty title="This rollout could not be read" main={!group}>
        {error}
      </Empty>
    )
  if (!row)
    return (
      <Empty title="No such rollout" main={!group}>
        The run has no rollout “{rollout}”. Keys look like train/20/3/5: split, step, group, sample.
      </Empty>
    )
  return (
    <Empty title="The tokens of this rollout are not in the file" command={`npx aworld-train view ${shellWord(summary.path)}`}>
      The file carries as many as its size allows, and none that are damaged. Of this one it has reward {points(row.reward)}, {row.turns}{' '}
      turns, {integer(row.sampledTokens)} sampled tokens, answer “{visible(row.answer ?? 'none')}”.
    </Empty>
  )
}

export function Rollout({ summary, rollout }: { summary: RunSummary; rollout: string }) {
  const { trace, group, error: problem, isRead } = useRollout(rollout, summary)
  const wanted = route.value.query.get('agent')
  const [chosen, choose] = useState<string | null>(null)
  const siblings = group?.rows ?? []
  const place = siblings.findIndex(({ key }) => key === rollout)
  const turn = (by: number) => {
    const next = siblings[place + by]
    if (next) go(hrefs.rollout(next.key))
  }
  const partner = group && partnerOf(group, rollout)
  const row = trace?.row
  const start = row ? Math.min(row.queuedAt, row.startedAt ?? row.queuedAt) : 0
  const calls = trace ? callsOf(trace, start) : []
  const current = calls.find(({ id }) => id === chosen) ?? calls[0]
  const pick = (id: string, scroll = false) => {
    choose(id)
    if (scroll) setTimeout(() => document.querySelector(`[data-call="${CSS.escape(id)}"]`)?.scrollIntoView({ block: 'nearest' }))
  }
  const move = (by: number) => {
    const next = calls[(current ? calls.indexOf(current) : -1) + by]
    if (next) pick(next.id, true)
  }
  useKeys({
    j: () => move(1),
    k: () => move(-1),
    ArrowRight: () => turn(1),
    ArrowLeft: () => turn(-1),
    c: () => partner && go(hrefs.compare(rollout, partner)),
    Enter: () => go(hrefs.tokens(rollout)),
  })
  if (!trace || !row) {
    if (!isRead) return null
    return (
      <>
        {group && <Head group={group} rollout={rollout} />}
        <Absent rollout={rollout} group={group} summary={summary} error={problem} />
      </>
    )
  }
  const { agents, task, error } = trace
  const end = Math.max((row.endedAt ?? start) - start, ...calls.map(({ at, ms }) => at + ms), 1)
  const { waitMs } = row
  const shown = agents.find(({ agent }) => agent === (wanted ?? current?.agent)) ?? agents[0]
  const samples = group?.samples[place] ?? null
  const mean = siblings.length > 0 ? siblings.reduce((sum, { reward }) => sum + (reward ?? 0), 0) / siblings.length : 0
  const lastOf = new Map<string, number>()
  return (
    <>
      {group ? <Head group={group} rollout={rollout} /> : <h1>{task?.question ?? rollout}</h1>}
      <Facts
        of={[
          [
            'reward',
            <>
              <Dot reward={row.reward} /> <b>{row.status === 'done' ? points(row.reward) : row.status}</b>
            </>,
          ],
          ['answer', <b class="answer">{visible(row.answer ?? 'none').slice(0, 200)}</b>],
          ...(task?.answer == null ? [] : [['expected', visible(task.answer).slice(0, 200)] as const]),
          ...(row.split === 'train'
            ? [['advantage', <Advantage value={samples?.reason ? 0 : (samples?.advantage ?? null)} />] as const]
            : []),
          [
            'became',
            row.split === 'train'
              ? samples === null
                ? 'not trained yet'
                : samples.reason === null
                  ? 'trained'
                  : samples.reason.replaceAll('-', ' ')
              : 'evaluation',
          ],
          ['ended', row.stopReason ?? row.status],
          ['tokens', `${integer(row.sampledTokens)} sampled`],
          ...(row.attempt > 0 ? [['attempt', row.attempt + 1] as const] : []),
          ['', <a href={hrefs.tokens(rollout)}>Tokens</a>],
          ...(partner ? [['', <a href={hrefs.compare(rollout, partner)}>Compare</a>] as const] : []),
        ]}
      />
      {error && (
        <div class="failure" role="alert">
          <b>
            {error.code} <small>{error.boundary}</small>
          </b>
          <p>{prose(error.message)}</p>
          {trace.remedy !== null && <p>{trace.remedy}</p>}
        </div>
      )}
      <div class="split rollout">
        <Section
          class="timeline"
          title="Time"
          note={
            <>
              {seconds(end)} = {waitMs.queue >= 0.5 && <>queue {seconds(waitMs.queue)} + </>}
              <span class="m-model">model {seconds(waitMs.engine)}</span> + <span class="m-tool">tools {seconds(waitMs.tools)}</span> + rest{' '}
              {seconds(waitMs.agent)}
            </>
          }
        >
          {agents.length > 1 && (
            <ul class="lanes" aria-label="Agents">
              {agents.map(({ agent }) => (
                <li key={agent}>
                  <button
                    type="button"
                    aria-pressed={shown?.agent === agent}
                    class={shown?.agent === agent ? 'chosen' : ''}
                    onClick={() => pick(calls.find((call) => call.agent === agent)?.id ?? '')}
                  >
                    <span class="who">{agent}</span>
                    <span class="lane">
                      {calls
                        .filter((call) => call.agent === agent)
                        .map((call) => (
                          <Bar key={call.id} call={call} total={end} />
                        ))}
                    </span>
                    <span class="ms">{seconds(calls.filter((call) => call.agent === agent).reduce((sum, { ms }) => sum + ms, 0))}</span>
                  </button>
                </li>
              ))}
            </ul>
          )}
          <ol>
            {calls.map((call) => {
              const waitFrom = lastOf.get(call.agent)
              lastOf.set(call.agent, call.at + call.ms)
              return (
                <li key={call.id}>
                  <button
                    type="button"
                    class={call === current ? 'chosen' : ''}
                    aria-pressed={call === current}
                    onClick={() => pick(call.id, true)}
                  >
                    <span class="who">
                      {call.lane === 'model' ? <b>{call.turn! + 1}</b> : <b>↳</b>} {visible(call.name)}
                    </span>
                    <span class="lane">
                      <Bar call={call} total={end} waitFrom={waitFrom} />
                    </span>
                    <span class="ms">{seconds(call.ms)}</span>
                    <span class="note">{call.note}</span>
                  </button>
                </li>
              )
            })}
          </ol>
          {calls.length > 0 && (
            <p class="axis">
              <span>0</span>
              <span>{seconds(end / 2)}</span>
              <span>{seconds(end)}</span>
            </p>
          )}
          {calls.length === 0 && <p class="quiet">No model call was recorded.</p>}
          <Attempts trace={trace} />
          {group && <Samples group={group} current={rollout} />}
        </Section>
        <Section class="talk" title="Conversation" note={agents.length > 1 ? shown?.agent : undefined}>
          {shown && <Talk trace={trace} agent={shown} chosen={current?.id} choose={(id) => pick(id)} />}
          {row.status === 'done' && (
            <article class="message end">
              <h3>reward {task?.answer != null && <small>expected “{visible(task.answer).slice(0, 200)}”</small>}</h3>
              <p>
                <Dot reward={row.reward} /> {row.reward === null ? 'not scored' : points(row.reward)}
                {Object.entries(trace.scores).map(([name, value]) => ` · ${name} ${points(value)}`)}
                {row.split === 'train' && samples && (
                  <>
                    {' '}
                    against a group mean of {fixed(mean, 2)}, so advantage <Advantage value={samples.reason ? 0 : samples.advantage} />
                  </>
                )}
              </p>
            </article>
          )}
        </Section>
      </div>
    </>
  )
}

export function Head({ group, rollout, href = hrefs.rollout }: { group: Group; rollout: string; href?: (key: string) => string }) {
  return (
    <div class="title">
      <Trail group={group} rollout={rollout} href={href} />
      <h1>{visible(group.task.question).slice(0, 400)}</h1>
    </div>
  )
}
