// The conversation: messages, calls with their results, and how sure the model was of each answer.
import type { InvocationTrace, RolloutTrace, ToolCall, TurnTrace } from '@aworld-train/core'
import { useState } from 'preact/hooks'
import { leastOfBins } from './bins.ts'
import { type Call, stretchAt, toolId, turnId } from './calls.ts'
import { dollars, integer, probability, prose, seconds, visible } from './format.ts'
import { hrefs } from './route.ts'
import { surprise } from './token-stream.ts'
import { Stretch } from './ui.tsx'

/** Arguments of a call, as a list if they are an object, else as they were written. */
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
/** Most characters of a text that is drawn as an image if it is the address of one. */
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

const Shot = ({ src, alt = 'returned by the tool' }: { src: string; alt?: string }) => <img class="shot" src={src} alt={alt} />

type Vocabulary = Readonly<Record<number, string>>

const stripBins = 120
/** Surprise along a completion, as a link to its tokens. */
function Strip({ vocabulary, turn, place, href }: { vocabulary: Vocabulary; turn: TurnTrace; place: number; href: string }) {
  return (
    <a class="strip" href={href} aria-label={`Tokens of turn ${place + 1}`}>
      {leastOfBins(turn.logprobs, stripBins).map(({ start, value }) => (
        <i key={start} title={`${visible(vocabulary[turn.completionIds[start]!] ?? '')}  ${probability(value)}`}>
          <i class={`p${surprise(value)}`} style={{ height: `${Math.min(100, 12 + 40 * -value)}%` }} />
        </i>
      ))}
    </a>
  )
}

/** Turns that are drawn at once. */
const mostTurns = 40

interface TalkProps {
  readonly trace: RolloutTrace
  readonly invocation: InvocationTrace
  readonly chosen: Call | undefined
  readonly choose: (id: string) => void
}

/** Links to invocations. */
function Links({ trace, of }: { trace: RolloutTrace; of: readonly { readonly id: string; readonly call?: string | undefined }[] }) {
  return of.map(({ id, call }, index) => (
    <span key={index}>
      {index > 0 && ', '}
      <a href={hrefs.rollout(trace.row.key, call === undefined ? { invocation: id } : { call })}>{visible(id)}</a>
    </span>
  ))
}

/** What started an invocation, with a link to the turn that asked for it or whose answer it took over. */
function StartedBy({ trace, invocation }: { trace: RolloutTrace; invocation: InvocationTrace }) {
  const starts = invocation.startedBy.flatMap(({ trajectory, turn, toolCall }) => {
    const by = trace.invocations.find(({ id }) => id === trajectory)
    const place = by?.turns.findIndex(({ index }) => index === turn) ?? -1
    const asked = by?.turns[place]
    return by ? [{ id: trajectory, place, toolCall, call: asked && turnId(trajectory, asked) }] : []
  })
  const [first] = starts
  if (!first) return null
  const isCall = first.toolCall !== null
  return (
    <p class="started">
      {isCall ? 'Asked for by ' : starts.length > 1 ? 'Took over the answers of ' : 'Took over the answer of '}
      <Links trace={trace} of={starts} />
      {starts.length === 1 && first.place >= 0 && ` in turn ${first.place + 1}`}
    </p>
  )
}

/** The messages of an invocation and its tools. A long conversation shows the stretch with the chosen call. */
export function Talk({ trace, invocation, chosen, choose }: TalkProps) {
  const { turns } = invocation
  const { from, shown } = stretchAt(turns, chosen?.invocation === invocation.id ? (chosen.turn ?? 0) : 0, mostTurns)
  const go = (place: number) => choose(turnId(invocation.id, turns[place]!))
  const answers = new Map(trace.toolCalls.filter((call) => call.trajectory === invocation.id).map((call) => [call.id, call]))
  const started = trace.invocations.flatMap(({ id, startedBy }) =>
    startedBy.filter(({ trajectory }) => trajectory === invocation.id).map(({ toolCall }) => ({ id, toolCall })),
  )
  const calls = new Set(turns.flatMap(({ message }) => message.toolCalls?.map(({ id }) => id) ?? []))
  const handedOn = started.filter(({ toolCall }) => toolCall === null || !calls.has(toolCall))
  return (
    <>
      <StartedBy trace={trace} invocation={invocation} />
      {turns.length === 0 && <p class="quiet">It made no model call.</p>}
      <Stretch name="turns" from={from} count={shown.length} total={turns.length} go={go} />
      {shown.map((turn, index) => {
        const place = from + index
        const id = turnId(invocation.id, turn)
        const calls: readonly ToolCall[] = turn.message.toolCalls ?? []
        return (
          <div key={turn.index}>
            {turn.branchReasons.length > 0 && place > 0 && <p class="quiet">A new branch: {turn.branchReasons.join(', ')}.</p>}
            {turn.messagesDelta.map((message, number) => {
              const tool = message.toolCallId === undefined ? undefined : answers.get(message.toolCallId)
              const toolChosen = tool && chosen?.id === toolId(tool) ? ' chosen' : ''
              return (
                <article
                  key={number}
                  data-call={tool && toolId(tool)}
                  class={`message ${message.role}${toolChosen}${tool?.isError ? ' error' : ''}`}
                  onClick={() => tool && choose(toolId(tool))}
                >
                  <h3>
                    {message.role}
                    {tool && (
                      <small>
                        {' '}
                        {visible(tool.name)}, {seconds(tool.timing.endedAt - tool.timing.startedAt)}
                        {tool.isError && ', error'}
                        {tool.source && ` at ${visible(tool.source)}`}
                      </small>
                    )}
                  </h3>
                  {message.content !== null && <Text text={message.content} />}
                  {tool?.images?.map(({ mimeType, data, shows }) => (
                    <Shot key={data} src={`data:${mimeType};base64,${data}`} {...(shows && { alt: 'the desktop after the call' })} />
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
            <article data-call={id} class={`message assistant${chosen?.id === id ? ' chosen' : ''}`} onClick={() => choose(id)}>
              <h3>
                {visible(invocation.agent)}{' '}
                <small>
                  turn {place + 1},{' '}
                  {turn.completionIds.length > 0 ? `${integer(turn.completionIds.length)} tokens` : visible(turn.model ?? 'no tokens')},{' '}
                  {turn.finishReason.unified}
                  {turn.unparsed.length > 0 && `, a call did not parse: ${turn.unparsed.join(', ')}`}
                  {turn.cost !== null && `, ${dollars(turn.cost)}`}
                </small>
              </h3>
              {turn.message.reasoning && (
                <details>
                  <summary>Reasoning, {integer(turn.message.reasoning.length)} characters</summary>
                  <Text text={turn.message.reasoning} />
                </details>
              )}
              {turn.message.content && <Text text={turn.message.content} />}
              {calls.map((call) => {
                const helpers = started.filter(({ toolCall }) => toolCall === call.id)
                return (
                  <div class="call" key={call.id}>
                    <b>{visible(call.name)}</b>
                    <Arguments text={call.arguments} />
                    {helpers.length > 0 && (
                      <span>
                        → <Links trace={trace} of={helpers} />
                      </span>
                    )}
                  </div>
                )
              })}
              {turn.logprobs.length > 0 && (
                <Strip
                  vocabulary={trace.vocabularies[invocation.policy] ?? {}}
                  turn={turn}
                  place={place}
                  href={hrefs.tokens(trace.row.key, {
                    turn: String(place),
                    ...(trace.invocations.length > 1 && { invocation: invocation.id }),
                  })}
                />
              )}
            </article>
          </div>
        )
      })}
      {handedOn.length > 0 && (
        <p class="started">
          {handedOn.some(({ toolCall }) => toolCall !== null) ? 'Started ' : 'Handed its answer on to '}
          <Links trace={trace} of={handedOn} />
        </p>
      )}
    </>
  )
}
