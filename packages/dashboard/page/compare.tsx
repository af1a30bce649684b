// Two rollouts side by side, token by token, with the first difference.
import type { RolloutTrace, RunSummary } from '@aworld-train/core'
import type { ComponentChildren } from 'preact'
import { useMemo, useState } from 'preact/hooks'
import { Absent } from './absent.tsx'
import { align, sharedPrefix } from './align.ts'
import { client, isAnswered, useLoaded, useSummary } from './data.ts'
import { clip, fixed, integer, points, probability, stepName, visible } from './format.ts'
import { type Group, isEvaluation, isOfEvaluation, placeOf, sampleName } from './groups-of.ts'
import { mainInvocation } from './lanes.ts'
import { filter, go, hrefs, route } from './route.ts'
import { byText, isTextAlone, surprise, type Token, tokensOf, wordsOf } from './token-stream.ts'
import { Advantage, Dot, Dots, InvocationChoice, Section, useKeys } from './ui.tsx'
import { useRollout } from './use-rollout.ts'

const piece = (token: Token) => visible(clip(token.text, 44))
/** What is compared: tokens by their ids, by their texts in another run, or the words of messages where text alone was recorded. */
type Pieces = 'ids' | 'texts' | 'words'

/** The tokens of an invocation; none if the rollout has none of this id. */
const streamOf = (trace: RolloutTrace, id: string, pieces: Pieces): readonly Token[] => {
  const invocation = trace.invocations.find((each) => each.id === id)
  if (!invocation) return []
  if (pieces === 'words') return wordsOf(invocation)
  return pieces === 'texts' ? byText(tokensOf(trace, invocation)) : tokensOf(trace, invocation)
}

interface Way {
  readonly token: Token
  readonly keys: string[]
  readonly rewards: number[]
}

/** The continuation of every sample of the group after the prefix that these two share. */
function waysOf(traces: readonly RolloutTrace[], invocation: string, prefix: readonly Token[], pieces: Pieces): Way[] {
  const ways = new Map<Token['id'], Way>()
  for (const trace of traces) {
    const tokens = streamOf(trace, invocation, pieces)
    const token = tokens[prefix.length]
    if (!token || prefix.some(({ id }, index) => tokens[index]?.id !== id)) continue
    const way = ways.get(token.id) ?? { token, rewards: [], keys: [] }
    way.rewards.push(trace.row.reward ?? 0)
    way.keys.push(trace.row.key)
    ways.set(token.id, way)
  }
  return [...ways.values()].sort((a, b) => b.keys.length - a.keys.length)
}

/** Most samples of a large group whose tokens are read for the comparison. */
const mostSiblings = 64

interface SideProps {
  readonly group: Group
  readonly rollout: string
  readonly name: string
  /** Its run, if the other side is in another one. */
  readonly run: string | null
  readonly children?: ComponentChildren
}
function Side({ group, rollout, name, run, children }: SideProps) {
  const index = group.rows.findIndex(({ key }) => key === rollout)
  const row = group.rows[index]
  if (!row) return null
  const sample = group.samples[index]
  return (
    <div class="side">
      <b class="letter">{name}</b>
      <a href={hrefs.rollout(rollout, {}, run ?? undefined)}>
        {run === null ? '' : `${run}, `}
        {sampleName(row)}
      </a>
      <span>
        <Dot reward={row.reward} /> {points(row.reward)}
      </span>
      {row.split === 'train' && (
        <span>
          <Advantage value={sample?.reason ? 0 : (sample?.advantage ?? null)} />
        </span>
      )}
      <span class="answer">“{visible(row.answer ?? 'none')}”</span>
      {children}
    </div>
  )
}

function Fork({ token, name, other }: { token: Token | undefined; name: string; other: Token | undefined }) {
  if (!token)
    return (
      <div class="fork">
        <b class="letter">{name}</b>
        <p>ended here</p>
      </div>
    )
  return (
    <div class="fork">
      <b class="letter">{name}</b>
      <span class="token parted">{piece(token)}</span>
      {token.logprob === null ? (
        <p>
          <small>
            {token.origin === 'sampled'
              ? 'its probability is not recorded'
              : other?.origin === token.origin
                ? 'written by the environment, not sampled'
                : 'not sampled'}
          </small>
        </p>
      ) : (
        <>
          <span class="meter">
            <i style={{ width: `${100 * Math.exp(token.logprob)}%` }} />
          </span>
          <p>
            <b>{probability(token.logprob)}</b>
            <small>
              log p {fixed(token.logprob, 3)}
              {token.version !== null && `, weights v${token.version}`}
            </small>
          </p>
        </>
      )}
    </div>
  )
}

/** Tokens of one cell that are drawn at first, how many of them precede the first difference, and how many a click adds. */
const longCell = 600
const leadUp = 120
const mostAdded = 2_000

interface CellProps {
  readonly tokens: readonly Token[]
  readonly isSame: boolean
  readonly isWhole: boolean
  readonly side: string
  readonly isEqual: (token: Token) => boolean
  readonly toneOf: (token: Token) => string
  readonly unfold: () => void
}
function Cell({ tokens, isSame, isWhole, side, isEqual, toneOf, unfold }: CellProps) {
  const parting = tokens.findIndex((token) => !isEqual(token))
  const [from, setFrom] = useState(tokens.length <= longCell ? 0 : Math.max(0, parting - leadUp))
  const [to, setTo] = useState(from + longCell)
  const show = (token: Token) => (
    <span key={token.position} title={token.logprob === null ? '' : probability(token.logprob)} class={`token ${toneOf(token)}`}>
      {piece(token)}
    </span>
  )
  const isFolded = isSame && !isWhole && tokens.length > 14 && tokens[0]!.origin !== 'sampled'
  return (
    <div class={`cell${isSame ? '' : ' differs'}`} data-side={side}>
      {tokens.length === 0 && <span class="quiet">nothing here</span>}
      {isFolded ? (
        <>
          {tokens.slice(0, 3).map(show)}
          <button type="button" class="fold" onClick={unfold}>
            {integer(tokens.length - 6)} equal
          </button>
          {tokens.slice(-3).map(show)}
        </>
      ) : (
        <>
          {from > 0 && (
            <button type="button" class="fold" onClick={() => setFrom(Math.max(0, from - mostAdded))}>
              {integer(from)} before
            </button>
          )}
          {tokens.slice(from, to).map(show)}
          {tokens.length > to && (
            <button type="button" class="fold" onClick={() => setTo(to + mostAdded)}>
              {integer(tokens.length - to)} more
            </button>
          )}
        </>
      )}
    </div>
  )
}

/** Two rollouts, of which the second may be in another run. */
export function Compare({ summary, a, b, otherRun }: { summary: RunSummary; a: string; b: string; otherRun: string | null }) {
  const [isWhole, showWhole] = useState(false)
  const left = useRollout(a, summary)
  const other = useSummary(otherRun ?? route.value.run)
  const right = useRollout(b, other.value, otherRun ?? undefined)
  const { group } = left
  const otherGroup = right.group
  const siblings = group?.rows ?? []
  const keys = siblings.slice(0, mostSiblings).map(({ key }) => key)
  const traces = useLoaded(
    `${route.value.run} traces ${keys.join()}`,
    async () => (await Promise.all(keys.map((key) => client().rollout(key)))).filter((trace) => trace !== null),
    // Samples that wait or run get more tokens later.
    (list) => list.some(({ row: { status } }) => status === 'queued' || status === 'running'),
  )
  const all = [left, right].flatMap(({ trace }) => trace?.invocations ?? [])
  const invocations = [...new Map(all.map((each) => [each.id, each])).values()]
  const wanted = route.value.query.get('invocation')
  const invocation = invocations.find(({ id }) => id === wanted) ?? mainInvocation(invocations)
  const id = invocation?.id ?? ''
  const inOther = otherRun === null ? {} : { in: otherRun }
  const beside = (one: string, two: string) => hrefs.compare(one, two, { ...(id === wanted && { invocation: id }), ...inOther })
  const swapped = otherRun === null ? beside(b, a) : hrefs.compare(b, a, { in: route.value.run }, otherRun)
  const turn = (by: number) => {
    const others = otherGroup?.rows ?? []
    const at = others.findIndex(({ key }) => key === b)
    const count = others.length
    for (let step = 1; step <= count; step++) {
      const next = others[(at + by * step + count * step) % count]!
      if (otherRun !== null || next.key !== a) return go(beside(a, next.key))
    }
  }
  const isRead = left.isRead && right.isRead && isAnswered(traces) && isAnswered(other)
  useKeys({ ArrowRight: () => turn(1), ArrowLeft: () => turn(-1), s: () => go(swapped), a: () => showWhole(!isWhole) }, isRead)
  const pieces = all.some((each) => each.id === id && isTextAlone(each)) ? 'words' : otherRun === null ? 'ids' : 'texts'
  const [x, y] = useMemo(
    () => [left.trace ? streamOf(left.trace, id, pieces) : [], right.trace ? streamOf(right.trace, id, pieces) : []] as const,
    [left.trace, right.trace, id, pieces],
  )
  const aligned = useMemo(() => align(x, y), [x, y])
  const unit = pieces === 'words' ? 'word' : 'token'
  // Everything is read before anything is shown, so that nothing moves.
  if (!isRead) return null
  const problem = left.error ?? right.error ?? traces.error
  if (problem !== null || !group) return <Absent rollout={a} group={group} summary={summary} error={problem} />
  const place = placeOf(siblings.find(({ key }) => key === a) ?? siblings[0]!)
  const head = (
    <div class="title">
      <div class="trail">
        <a href={hrefs.step(place)}>{isOfEvaluation(siblings[0]!) ? 'Tasks' : stepName(place)}</a>
        <span>›</span>
        <a href={hrefs.step(place, { group: group.id })}>{`${isEvaluation(place) ? 'task' : 'group'} ${group.label}`}</a>
        <span>›</span>
        <b>two rollouts</b>
      </div>
      <h1>{group.task.question.slice(0, 400)}</h1>
    </div>
  )
  if (!left.trace || !right.trace)
    return (
      <>
        {head}
        <Absent rollout={left.trace ? b : a} group={group} summary={summary} error={null} />
      </>
    )
  const shared = sharedPrefix(x, y)
  const [p, q] = [x[shared], y[shared]]
  const ways = traces.value ? waysOf(traces.value, id, x.slice(0, shared), pieces) : []
  const gone = siblings.length - ways.reduce((sum, way) => sum + way.keys.length, 0)
  const { lines, equal } = aligned
  const same = equal.size / 2
  const isGoing = [left.trace, right.trace].some(({ row: { status } }) => status === 'queued' || status === 'running')
  const isOtherWeights = p?.version !== q?.version && p?.version != null && q?.version != null
  const toneOf = (token: Token) => {
    if (equal.has(token)) return 'equal'
    if (token.position === shared) return 'parted'
    if (pieces === 'words') return 'only'
    return token.logprob !== null ? `p${surprise(token.logprob)}` : token.origin === 'tool' ? 'o-tool' : 'context'
  }
  return (
    <>
      {head}
      <div class="sides">
        <Side group={group} rollout={a} name="A" run={otherRun && route.value.run}>
          <Dots group={group} current={a} href={(key) => beside(key, b)} />
        </Side>
        <Side group={otherGroup ?? group} rollout={b} name="B" run={otherRun}>
          <Dots group={otherGroup ?? group} current={b} href={(key) => beside(a, key)} />
        </Side>
      </div>
      {invocation && invocations.length > 1 && (
        <div class="bar">
          <InvocationChoice of={invocations} chosen={invocation} choose={(other) => filter({ invocation: other })} />
        </div>
      )}
      {!p && !q ? (
        <div class="empty" key="equal">
          <h2>{x.length === 0 ? 'Nothing to compare' : `Equal to the last ${unit}`}</h2>
          <p>
            {x.length === 0
              ? `Neither has a token or a word of ${visible(id)}.`
              : `Both have the same ${integer(x.length)} ${unit}s of ${visible(id)}.`}{' '}
            Choose another sample above; ← and → go through them.
          </p>
        </div>
      ) : (
        <div class={`parting${summary.status === 'running' ? ' going' : ''}`} key="parting">
          <Section
            title={
              p?.origin === 'sampled' || q?.origin === 'sampled'
                ? `They part at ${unit} ${integer(shared)}, in turn ${(p ?? q)!.turn + 1}`
                : `The environment parts them at ${unit} ${integer(shared)}`
            }
            note={isOtherWeights ? 'under different weights' : 'after the same prefix'}
          >
            <div class="forks">
              <Fork token={p} name="A" other={q} />
              <Fork token={q} name="B" other={p} />
            </div>
          </Section>
          <Section
            title={`All ${siblings.length} ${isEvaluation(place) && !isOfEvaluation(siblings[0]!) ? 'evaluations' : 'samples'}${otherRun === null ? '' : ' of A'}, here`}
            note={`next ${unit}, mean reward`}
          >
            <div class="scroll">
              <table class="rows ways">
                <thead class="unseen">
                  <tr>
                    <th scope="col">next {unit}</th>
                    <th scope="col">samples</th>
                    <th scope="col">which</th>
                    <th scope="col">mean reward</th>
                    <th scope="col">probability</th>
                  </tr>
                </thead>
                <tbody>
                  {ways.map((way) => (
                    <tr key={way.token.id} class={way.token.id === p?.id || way.token.id === q?.id ? 'on' : ''}>
                      <th scope="row">
                        <span class="token">{piece(way.token)}</span>
                      </th>
                      <td>{way.keys.length}×</td>
                      <td>
                        <span class="dots">
                          {way.keys.map((key, index) => (
                            <a key={key} href={beside(a, key)} aria-label={`${key}, reward ${points(way.rewards[index]!)}`}>
                              <Dot reward={way.rewards[index]!} />
                            </a>
                          ))}
                        </span>
                      </td>
                      <td>{fixed(way.rewards.reduce((sum, reward) => sum + reward, 0) / way.rewards.length, 2)}</td>
                      <td>{way.token.logprob === null ? '' : <small>p {probability(way.token.logprob)}</small>}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
            <p class="quiet">
              {traces.value && gone > 0 && `${gone} had left this prefix before, or ended. `}
              {!isEvaluation(place) && 'What each would have earned by the other token is not recorded.'}
            </p>
          </Section>
        </div>
      )}
      {isGoing ? (
        <p class="quiet">They are aligned when both have ended.</p>
      ) : (
        <Section
          class={`aligned ${pieces}`}
          title={`Aligned by ${unit}s`}
          note={
            <>
              <b>{integer(same)}</b> equal, <span class="m-a">{integer(x.length - same)} only in A</span>,{' '}
              <span class="m-b">{integer(y.length - same)} only in B</span>{' '}
              <button type="button" class="link" aria-pressed={isWhole} onClick={() => showWhole(!isWhole)}>
                {isWhole ? 'Fold equal' : 'Show equal'}
              </button>
            </>
          }
        >
          <div>
            {lines.map((line, index) => {
              const cell = {
                isSame: line.isSame,
                isWhole,
                isEqual: (token: Token) => equal.has(token),
                toneOf,
                unfold: () => showWhole(true),
              }
              return (
                <div class="line" key={`${id} ${line.turn} ${line.isSampled}`}>
                  <span class="gutter">
                    {lines[index - 1]?.turn === line.turn ? '' : `turn ${line.turn + 1} `}
                    {line.isSampled && <small>sampled</small>}
                  </span>
                  <Cell {...cell} tokens={line.left} side="A" />
                  <Cell {...cell} tokens={line.right} side="B" />
                </div>
              )
            })}
          </div>
        </Section>
      )}
    </>
  )
}
