// All runs, with the chosen ones laid over each other.
import type { RunListing, RunSummary, StepSummary } from '@aworld-train/core'
import { useEffect } from 'preact/hooks'
import { comparedEvaluations } from '../src/compared-evaluations.ts'
import { Chart, hoverStep } from './chart.tsx'
import { always, clientOf, isAnswered, isExport, type Loaded, readAgainNow, runs, useLoaded } from './data.ts'
import { Difference, Figure } from './evaluation.tsx'
import { dollars, fixed, integer, seconds, when } from './format.ts'
import { Matrix } from './matrix.tsx'
import { filter, hrefs, route } from './route.ts'
import { Chips, Empty, Section } from './ui.tsx'

/** Colours and dashes of the lines, in the order in which runs were chosen. The dashes distinguish them without colour. */
const inks = ['--data', '--bad', '--tool', '--user']
const dashes: readonly number[][] = [[], [6, 3], [2, 3], [10, 3, 2, 3]]
const shortName = ({ id, name }: RunListing) => (id.startsWith(`${name}-`) ? id.slice(name.length + 1) : id)

const kinds: readonly (readonly [name: string, read: (step: StepSummary) => number | null])[] = [
  ['Training reward', ({ reward }) => reward],
  ['Groups that teach', ({ groups }) => groups.mixed],
  ['Tokens a rollout', ({ tokens }) => tokens],
  ['Entropy', ({ metrics }) => metrics?.['entropy'] ?? null],
  ['Gradient norm', ({ metrics }) => metrics?.['gradNorm'] ?? null],
  ['Step, seconds', ({ metrics }) => (metrics?.['stepMs'] === undefined ? null : metrics['stepMs'] / 1000)],
]

/** Seconds of training until the end of each step, from the durations of the steps. */
function elapsed(steps: readonly StepSummary[]): number[] {
  let sum = 0
  return steps.map(({ metrics }) => {
    sum += (metrics?.['stepMs'] ?? 0) / 1000
    return Number(sum.toFixed(2))
  })
}

function Overlay({ listings, summaries, byTime }: { listings: readonly RunListing[]; summaries: readonly RunSummary[]; byTime: boolean }) {
  const lines = summaries.map(({ steps }) => steps.filter(({ rollouts }) => rollouts > 0))
  const xs = lines.map((steps) => (byTime ? elapsed(steps) : steps.map(({ step }) => step)))
  return (
    <>
      <div class="overlay">
        {kinds.map(([name, read], index) => {
          const values = lines.map((steps) => steps.map(read))
          if (!values[0]?.some((value) => value !== null)) return null
          const others = values.slice(1).map((each, line) => ({
            xs: xs[line + 1]!,
            values: each,
            color: inks[(line + 1) % inks.length]!,
            dash: dashes[(line + 1) % dashes.length]!,
          }))
          return (
            <Section key={name} title={name} note={byTime ? 'by seconds of training' : 'by step'} class={index === 0 ? 'main' : ''}>
              <Chart
                label={`${name} of ${listings.map(shortName).join(', ')}`}
                xs={xs[0]!}
                values={values[0]}
                more={others}
                height={index === 0 ? 240 : 120}
                axes
                zero
                {...(byTime && { xUnit: 'seconds' })}
              />
            </Section>
          )
        })}
      </div>
      <div class="scroll">
        <table class="rows plain">
          <thead>
            <tr>
              <th scope="col">run</th>
              <th scope="col">held-out before</th>
              <th scope="col">after</th>
              <th scope="col">95 % interval</th>
              <th scope="col">steps</th>
              <th scope="col">sampled tokens</th>
              <th scope="col">trained</th>
              <th scope="col">wall time</th>
            </tr>
          </thead>
          <tbody>
            {summaries.map((summary, index) => {
              const { before, after } = comparedEvaluations(summary.evaluations)
              return (
                <tr key={listings[index]!.id}>
                  <th scope="row">
                    <Ink index={index} /> <a href={hrefs.overview(listings[index]!.id)}>{shortName(listings[index]!)}</a>
                  </th>
                  <td>{fixed(before?.reward)}</td>
                  <td>
                    <b>{fixed(after?.reward)}</b>
                  </td>
                  <td>{after ? `[${fixed(after.interval[0])}, ${fixed(after.interval[1])}]` : '–'}</td>
                  <td>{lines[index]!.length}</td>
                  <td>{integer(summary.ledger.sampled)}</td>
                  <td>{integer(summary.ledger.trained)}</td>
                  <td>{summary.times ? seconds(summary.times.wallMs) : '–'}</td>
                </tr>
              )
            })}
          </tbody>
        </table>
      </div>
    </>
  )
}

/** The evaluations, and the first one compared with each other one. */
const useEvaluations = (ids: readonly string[]) =>
  useLoaded(
    `evaluations ${ids.join()}`,
    async () => {
      const [first = '', ...others] = ids
      const views = await Promise.all(ids.map((id) => clientOf(id).evaluation()))
      return { views, comparisons: await Promise.all(others.map((other) => runs.compare(first, other))) }
    },
    always,
  )

/** Evaluations side by side. */
function Evaluations({ ids, loaded }: { ids: readonly string[]; loaded: ReturnType<typeof useEvaluations> }) {
  if (loaded.error !== null) return <Empty title="An evaluation could not be read">{loaded.error}</Empty>
  if (!loaded.value) return null
  const { views, comparisons } = loaded.value
  const sides = views.flatMap((view, index) => (view ? [{ run: ids[index]!, name: letters[index]!, view }] : []))
  return (
    <section class="laid evaluations">
      <header>
        <h2>{ids.length} evaluations</h2>
      </header>
      <div class="figures">
        {sides.map(({ run, name, view: { numbers } }) => (
          <Section
            key={run}
            title={name}
            note={
              <a href={hrefs.overview(run)} title={run}>
                {run}
              </a>
            }
          >
            <Figure numbers={numbers} isLive={false} />
            <p class="quiet">
              {integer(numbers.tasks)} tasks, {numbers.cost === null ? 'no price' : dollars(numbers.cost)}, {integer(numbers.failed)} failed
            </p>
          </Section>
        ))}
      </div>
      <ul class="differences">
        {comparisons.map(({ comparison, problem }, index) => (
          <li key={ids[index + 1]}>
            {letters[0]} less {letters[index + 1]}: {comparison ? <Difference comparison={comparison} /> : problem}
          </li>
        ))}
      </ul>
      <Matrix sides={sides} order="differs" />
    </section>
  )
}

/** Names of evaluations side by side, in the order in which they were chosen. */
const letters = ['A', 'B', 'C', 'D']

function Ink({ index }: { index: number }) {
  return (
    <svg class="ink" viewBox="0 0 24 4" width="24" height="4" aria-hidden="true">
      <path
        d="M0 2h24"
        stroke={`var(${inks[index % inks.length]})`}
        stroke-width="2"
        stroke-dasharray={dashes[index % dashes.length]!.join(' ')}
      />
    </svg>
  )
}

const useSummaries = (listings: readonly RunListing[]) =>
  useLoaded(
    `overlay ${listings.map(({ id }) => id).join()}`,
    () => Promise.all(listings.map(({ id }) => clientOf(id).summary())),
    (summaries) => summaries.some(({ status }) => status === 'running'),
  )

function Laid({ listings, loaded }: { listings: readonly RunListing[]; loaded: Loaded<readonly RunSummary[]> }) {
  const byTime = route.value.query.get('by') === 'time'
  if (loaded.error !== null) return <Empty title="A run could not be read">{loaded.error}</Empty>
  if (!loaded.value) return null
  return (
    <section class="laid">
      <header>
        <h2>{listings.length === 1 ? '1 run' : `${listings.length} runs`}</h2>
        <Chips
          label="Lay over each other by"
          of={[
            ['step', 'By step'],
            ['time', 'By time'],
          ]}
          chosen={byTime ? 'time' : 'step'}
          onChoose={(by) => filter({ by: by === 'time' ? by : null })}
        />
      </header>
      <Overlay listings={listings} summaries={loaded.value} byTime={byTime} />
    </section>
  )
}

/** Milliseconds after which the list is read again while it is on screen. */
const listEveryMs = 5_000

export function Runs() {
  const list = useLoaded('runs', () => runs.list(), always)
  useEffect(() => {
    if (isExport) return
    // A returning reader sees what has happened in the meantime.
    if (list.value) readAgainNow()
    const timer = setInterval(readAgainNow, listEveryMs)
    return () => clearInterval(timer)
  }, [])
  const { query } = route.value
  // No name of a folder has a slash.
  const chosen = (query.get('with') ?? '').split('/').filter(Boolean)
  const found = chosen.flatMap((id) => list.value?.find((listing) => listing.id === id && listing.problem === null) ?? [])
  const evaluations = found.filter(({ kind }) => kind === 'evaluation').map(({ id }) => id)
  const laid = found.filter(({ kind }) => kind === 'training')
  const summaries = useSummaries(laid)
  const beside = useEvaluations(evaluations)
  hoverStep.value = null
  if (list.error !== null && !list.value)
    return (
      <Empty title="The runs could not be listed" main>
        {list.error}
      </Empty>
    )
  // The table moves once, when all chosen runs have arrived.
  if (!list.value || !isAnswered(summaries) || !isAnswered(beside)) return null
  if (list.value.length === 0)
    return (
      <Empty title="No runs here" main command="npm start">
        A run appears as soon as a training begins.
      </Empty>
    )
  const toggle = (id: string) => {
    const next = chosen.includes(id) ? chosen.filter((each) => each !== id) : [...chosen, id].slice(-inks.length)
    filter({ with: next.length > 0 ? next.join('/') : null })
  }
  return (
    <>
      <div class="title">
        <h1>Runs</h1>
        {!isExport && <p class="quiet">Choose two or more to lay them over each other; evaluations stand side by side.</p>}
      </div>
      {evaluations.length > 0 && <Evaluations ids={evaluations} loaded={beside} key={evaluations.join()} />}
      {laid.length > 0 && <Laid listings={laid} loaded={summaries} key={laid.map(({ id }) => id).join()} />}
      <div class="scroll">
        <table class="rows plain runs">
          <thead>
            <tr>
              <th scope="col">
                <span class="unseen">chosen</span>
              </th>
              <th scope="col">run</th>
              <th scope="col">begun</th>
              <th scope="col">status</th>
              <th scope="col">reward of each step</th>
              <th scope="col">steps</th>
              <th scope="col">held-out</th>
              <th scope="col">rollouts</th>
            </tr>
          </thead>
          <tbody>
            {list.value.map((listing) => (
              <tr key={listing.id}>
                <td>
                  <input
                    type="checkbox"
                    checked={chosen.includes(listing.id)}
                    disabled={listing.problem !== null}
                    onChange={() => toggle(listing.id)}
                    aria-label={`Choose ${listing.id}`}
                  />
                </td>
                <th scope="row">
                  {listing.problem === null ? (
                    <a href={hrefs.overview(listing.id)}>{listing.id}</a>
                  ) : (
                    <span class="quiet">{listing.id}</span>
                  )}
                  {listing.kind === 'evaluation' && <small class="quiet"> evaluation</small>}
                  {listing.problem !== null && <small class="message-of">{listing.problem}</small>}
                </th>
                <td>{listing.createdAt > 0 ? when(listing.createdAt) : '–'}</td>
                <td>
                  <i class={`state ${listing.status}`} />
                  {listing.status}
                </td>
                <td>
                  <Spark values={listing.rewards} />
                </td>
                <td>{listing.kind === 'evaluation' ? '–' : listing.steps}</td>
                <td>
                  {listing.kind === 'training' && `${fixed(listing.before)} → `}
                  <b>{fixed(listing.after)}</b>
                </td>
                <td>{integer(listing.rollouts)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  )
}

/** A curve between 0 and the greatest value, without axes. */
function Spark({ values }: { values: readonly number[] }) {
  if (values.length < 2) return <span class="quiet">–</span>
  const [low, high] = [Math.min(0, ...values), Math.max(1e-9, ...values)]
  const points = values.map(
    (value, index) => `${((120 * index) / (values.length - 1)).toFixed(1)},${(22 - (20 * (value - low)) / (high - low)).toFixed(1)}`,
  )
  return (
    <svg viewBox="0 0 120 24" width="120" height="24" role="img" aria-label={`from ${fixed(values[0])} to ${fixed(values.at(-1))}`}>
      <polyline points={points.join(' ')} fill="none" stroke="var(--data)" stroke-width="1.5" />
    </svg>
  )
}
