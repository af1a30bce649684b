// Every token of a rollout: its text, its origin, its probability, and whether it was trained.
import type { RunSummary } from '@aworld-train/core'
import { type Signal, useSignal } from '@preact/signals'
import { useMemo } from 'preact/hooks'
import { Absent, Head } from './absent.tsx'
import { leastOfBins } from './bins.ts'
import { brief, clip, fixed, integer, probability, signed, visible } from './format.ts'
import { partnerOf } from './groups-of.ts'
import { mainInvocation } from './lanes.ts'
import { filter, go, hrefs, route } from './route.ts'
import { Stream } from './stream.tsx'
import { type Colouring, colourings, leastLikely, legends, type Token, tokensOf, toneOf } from './token-stream.ts'
import { Advantage, Chips, Facts, InvocationChoice, Section, useKeys } from './ui.tsx'
import { useRollout } from './use-rollout.ts'

const titles: Readonly<Record<Colouring, string>> = {
  probability: 'Probability',
  advantage: 'Advantage',
  gap: 'Logprob gap',
  origin: 'Origin',
}
const surpriseBins = 96

/** Sums over all tokens, which are counted once and not at each move of the pointer. */
function count(tokens: readonly Token[]) {
  const sampled = tokens.filter(({ origin }) => origin === 'sampled')
  const logprobs = sampled.map(({ logprob }) => logprob ?? 0)
  return {
    sampled,
    bins: leastOfBins(logprobs, surpriseBins),
    trained: sampled.filter(({ isTrained }) => isTrained).length,
    least: tokens[leastLikely(tokens)],
    logprob: logprobs.reduce((sum, value) => sum + value, 0),
    advantages: [...new Set(sampled.flatMap(({ isTrained, advantage }) => (isTrained && advantage !== null ? [advantage] : [])))],
  }
}

interface InspectorProps {
  readonly tokens: readonly Token[]
  readonly chosen: number
  /** Position of the token under the pointer, which is shown in place of the chosen one. */
  readonly hovered: Signal<number | null>
  readonly colouring: Colouring
}
function Inspector({ tokens, chosen, hovered, colouring }: InspectorProps) {
  const token = tokens[hovered.value ?? chosen]
  if (!token) return null
  const { logprob, trainerLogprob } = token
  return (
    <>
      <p class="piece" aria-live="polite">
        <span class={`token ${toneOf(token, colouring)}`}>{visible(clip(token.text, 400))}</span>
      </p>
      {logprob === null ? (
        <p class="figure" aria-live="polite">
          <b class="quiet">–</b>
          <small>
            not sampled,
            <br />
            so no probability
          </small>
        </p>
      ) : (
        <p class="figure" aria-live="polite">
          <b>{probability(logprob)}</b>
          <small>
            probability
            <br />
            log p {fixed(logprob, 4)}
          </small>
        </p>
      )}
      <Facts
        of={[
          ['id', token.id],
          ['position', `${integer(token.position)} of ${integer(tokens.length)}`],
          ['turn', token.turn + 1],
          ['origin', token.origin],
          ['loss mask', token.isTrained ? '1, trained' : '0'],
          ['advantage', token.isTrained ? signed(token.advantage, 3) : '–'],
          ['weights', token.version === null ? '–' : `v${token.version}`],
          ['trainer log p', trainerLogprob === null ? <span class="quiet">not computed</span> : fixed(trainerLogprob, 4)],
          ['logprob gap', trainerLogprob === null || logprob === null ? '–' : brief(trainerLogprob - logprob)],
        ]}
      />
    </>
  )
}

export function Tokens({ summary, rollout }: { summary: RunSummary; rollout: string }) {
  const { query } = route.value
  const { trace, group, error: problem, isRead } = useRollout(rollout, summary)
  const invocations = trace?.invocations ?? []
  const wantedId = query.get('invocation')
  const invocation = invocations.find(({ id }) => id === wantedId) ?? mainInvocation(invocations)
  const tokens = trace && invocation ? tokensOf(trace, invocation) : []
  const ofTurn = query.get('turn')
  const wanted = query.get('at')
  const first = useMemo(
    () => (wanted === null ? leastLikely(tokens, ofTurn === null ? null : Number(ofTurn)) : Number(wanted)),
    [tokens, ofTurn],
  )
  const hovered = useSignal<number | null>(null)
  const chosen = wanted === null ? first : Math.min(Number(wanted) || 0, Math.max(0, tokens.length - 1))
  const by = query.get('by') as Colouring
  const colouring = colourings.includes(by) ? by : 'probability'
  const to = (index: number) => {
    if (index < 0 || index >= tokens.length) return
    hovered.value = null
    filter({ at: String(index), turn: null })
  }
  const jump = (test: (each: Token) => boolean, from = chosen + 1) => to(tokens.findIndex((each) => each.position >= from && test(each)))
  const here = tokens[chosen]
  const partner = group && partnerOf(group, rollout)
  const chosenOne = wantedId !== null && invocation?.id === wantedId ? { invocation: wantedId } : {}
  const comparison = partner && hrefs.compare(rollout, partner, chosenOne)
  const keys = {
    ArrowRight: () => to(chosen + 1),
    ArrowLeft: () => to(chosen - 1),
    b: () => {
      const next = colourings[(colourings.indexOf(colouring) + 1) % colourings.length]!
      filter({ by: next === 'probability' ? null : next })
    },
    n: () => jump((each) => each.logprob !== null && Math.exp(each.logprob) < 0.9),
    j: () => jump((each) => each.origin === 'sampled' && each.turn > (here?.turn ?? 0)),
    k: () => jump((each) => each.origin === 'sampled' && each.turn === Math.max(0, (here?.turn ?? 0) - 1), 0),
    c: () => comparison && go(comparison),
  }
  useKeys(keys, isRead)
  const { sampled, bins, trained, least, logprob, advantages } = useMemo(() => count(tokens), [tokens])
  if (!trace || !invocation) {
    if (!isRead) return null
    return (
      <>
        {group && <Head group={group} rollout={rollout} />}
        <Absent rollout={rollout} group={group} summary={summary} error={problem} />
      </>
    )
  }
  const reason = invocation.turns.find((turn) => turn.reason !== null)?.reason
  const lastOf = colouring === 'probability' ? undefined : colouring
  return (
    <>
      {group ? (
        <Head group={group} rollout={rollout} href={(key) => hrefs.tokens(key, lastOf ? { by: lastOf } : {})} />
      ) : (
        <h1>{visible(trace.task?.question ?? rollout).slice(0, 400)}</h1>
      )}
      <Facts
        of={[
          ['tokens', integer(tokens.length)],
          ['sampled', integer(sampled.length)],
          [
            'trained',
            <>
              {integer(trained)}
              {trained === 0 && <small> {trace.row.split === 'train' ? (reason?.replaceAll('-', ' ') ?? 'not yet') : 'evaluation'}</small>}
            </>,
          ],
          [
            'advantage',
            advantages.length > 1 ? (
              <>
                {signed(Math.min(...advantages))} to {signed(Math.max(...advantages))}
              </>
            ) : (
              <Advantage value={advantages[0] ?? null} none="–" />
            ),
          ],
          ['log p of all sampled', fixed(logprob, 2)],
          [
            'least likely',
            least && least.logprob !== null ? (
              <button type="button" class="link" onClick={() => to(least.position)}>
                {probability(least.logprob)}
              </button>
            ) : (
              '–'
            ),
          ],
          ['', <a href={hrefs.rollout(rollout, chosenOne)}>Rollout</a>],
          ...(comparison ? [['', <a href={comparison}>Compare</a>] as const] : []),
        ]}
      />
      <div class="bar sticky">
        <Chips
          label="Colour by"
          of={colourings.map((name) => [name, titles[name]])}
          chosen={colouring}
          onChoose={(name) => filter({ by: name === 'probability' ? null : name })}
        />
        <InvocationChoice of={invocations} chosen={invocation} choose={(id) => filter({ invocation: id, at: null, turn: null })} />
        <p class="legend" aria-label="Legend">
          {legends[colouring].map(([name, text]) => (
            <span key={name}>
              <i class={`token ${name}`}>{name === 'context' ? 'ab' : ''}</i>
              {text}
            </span>
          ))}
        </p>
      </div>
      {tokens.length === 0 ? (
        <p class="quiet">This invocation has no tokens: its calls, if it made any, were recorded as text alone.</p>
      ) : (
        <div class="split tokens">
          <Stream key={invocation.id} tokens={tokens} chosen={chosen} colouring={colouring} onChoose={to} hovered={hovered} />
          <aside class="inspect" aria-label="Token">
            <Inspector tokens={tokens} chosen={chosen} hovered={hovered} colouring={colouring} />
            <Section title="Surprise" note="−log p, sampled tokens">
              <div class="surprises">
                {bins.map(({ start, value }) => {
                  const one = sampled[start]!
                  return (
                    <button
                      type="button"
                      tabIndex={-1}
                      key={one.position}
                      class={one.position === chosen ? 'chosen' : ''}
                      aria-label={`token ${one.position}`}
                      onClick={() => to(one.position)}
                    >
                      <i style={{ height: `${Math.min(100, 4 + 32 * -value)}%` }} class={toneOf(one, colouring)} />
                    </button>
                  )
                })}
              </div>
            </Section>
          </aside>
        </div>
      )}
    </>
  )
}
