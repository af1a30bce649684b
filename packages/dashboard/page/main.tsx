import type { RunSummary } from '@aworld-train/core'
import { signal } from '@preact/signals'
import { render } from 'preact'
import { useEffect } from 'preact/hooks'
import 'uplot/dist/uPlot.min.css'
import './styles/index.css'
import { comparedEvaluations } from '../src/compared-evaluations.ts'
import { Compare } from './compare.tsx'
import { followRun, isConnected, live, usePlace, useSummary } from './data.ts'
import { Evaluation } from './evaluation.tsx'
import { integer } from './format.ts'
import { Groups } from './groups.tsx'
import { groupsOf, partnerOf } from './groups-of.ts'
import { Health } from './health.tsx'
import { Overview } from './overview.tsx'
import { Rollout } from './rollout.tsx'
import { go, hrefs, route } from './route.ts'
import { Runs } from './runs.tsx'
import { theme, turnTheme } from './theme.ts'
import { Tokens } from './tokens.tsx'
import { Empty, useKeys } from './ui.tsx'

const help = signal(false)
const keys: readonly (readonly [string, readonly (readonly [string, string])[]])[] = [
  [
    'Anywhere',
    [
      ['1 – 6', 'the pages named above'],
      ['0', 'all runs'],
      ['t', 'light or dark'],
      ['?', 'these keys'],
    ],
  ],
  [
    'Groups',
    [
      ['← →', 'step'],
      ['j k', 'group'],
      ['Enter', 'open its first rollout'],
      ['c', 'compare right with wrong'],
    ],
  ],
  [
    'Rollout',
    [
      ['← →', 'sample of the group'],
      ['j k', 'call'],
      ['Enter', 'its tokens'],
      ['c', 'compare with another'],
    ],
  ],
  [
    'Tokens',
    [
      ['← →', 'token'],
      ['j k', 'turn'],
      ['n', 'next surprising token'],
      ['b', 'colour by'],
      ['c', 'compare with another'],
    ],
  ],
  [
    'Compare',
    [
      ['← →', 'other rollout'],
      ['s', 'swap'],
      ['a', 'show equal tokens'],
    ],
  ],
]

function Help() {
  const close = () => {
    help.value = false
  }
  const open = (element: HTMLDialogElement | null) => {
    if (element && !element.open) element.showModal()
  }
  return (
    // The Escape key closes a dialog by itself.
    <dialog class="help" ref={open} onClose={close} onClick={(event) => event.target === event.currentTarget && close()} aria-label="Keys">
      <header>
        <h2>Keys</h2>
        <button type="button" onClick={close}>
          Close
        </button>
      </header>
      <div>
        {keys.map(([title, rows]) => (
          <section key={title}>
            <h3>{title}</h3>
            <dl>
              {rows.map(([key, what]) => (
                <div key={key}>
                  <dt>
                    {key.split(' ').map((part) => (
                      <kbd key={part}>{part}</kbd>
                    ))}
                  </dt>
                  <dd>{what}</dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
    </dialog>
  )
}

/** The reader's last position in this run, for the tabs: a place, a rollout, and one to compare with it. */
interface Last {
  readonly place: string
  readonly a: string | null
  readonly b: string | null
}
const visited = new Map<string, Last>()

function useLast(summary: RunSummary | null): Last {
  const { run, page, key, query } = route.value
  const { split } = comparedEvaluations(summary?.evaluations ?? [])
  const middle = summary?.steps[Math.floor(summary.steps.length / 2)]
  const before = visited.get(run) ?? { place: middle ? String(middle.step) : (split ?? '1'), a: null, b: null }
  const place = page === 'step' && key !== '' ? key : before.place
  let { a, b } = place === before.place ? before : { a: null, b: null }
  if (page === 'rollout' || page === 'tokens') [a, b] = [key, key === a ? b : null]
  if (page === 'compare') [a, b] = [key, query.has('in') ? null : query.get('with')]
  // If none was read yet, the first choice is a mixed group of the place and one of its right rollouts.
  const list = usePlace(summary && (a === null || b === null) ? place : null)
  const groups = list.value ? groupsOf(list.value, summary?.evaluations) : []
  const group =
    (a === null ? undefined : groups.find(({ rows }) => rows.some((row) => row.key === a))) ??
    groups.find(({ rows }) => rows.some(({ reward }) => reward !== rows[0]!.reward)) ??
    groups[0]
  a ??= group?.rows.find(({ reward }) => reward !== null && reward >= 1)?.key ?? group?.rows[0]?.key ?? null
  b ??= group && a !== null ? partnerOf(group, a) : null
  visited.set(run, { place, a, b })
  return { place, a, b }
}

function Progress({ summary }: { summary: RunSummary | null }) {
  const now = live.value
  const last = summary?.steps.at(-1)
  if (!isConnected.value) return <span class="progress">no connection: this is how it stood</span>
  if (!now) return null
  // A page that was opened within a step has not seen the step's beginning, so its finished rollouts are counted in the run.
  if (now.steps === 0 && now.phase === '')
    return last?.metrics === null ? (
      <span class="progress" aria-live="off">
        step {last.step}, {integer(last.rollouts)} done
      </span>
    ) : null
  return (
    // This is one text, because separate texts after a number would move with it.
    <span class="progress" aria-live="off">
      {[
        now.steps > 0 ? `step ${now.step} of ${now.steps}` : '',
        now.phase !== '' ? `${now.steps > 0 ? ', ' : ''}${now.phase} ` : '',
        now.done > 0 ? integer(now.done) : '',
        now.total > 0 ? ` of ${integer(now.total)}` : '',
      ].join('')}
    </span>
  )
}

function Tools() {
  return (
    <span class="tools">
      <button type="button" onClick={turnTheme} aria-label={theme.value === 'dark' ? 'Light colours' : 'Dark colours'}>
        {theme.value === 'dark' ? '☀' : '☾'}
      </button>
      <button
        type="button"
        onClick={() => {
          help.value = true
        }}
        aria-label="Keys"
      >
        ?
      </button>
    </span>
  )
}

const Mark = () => (
  <svg viewBox="0 0 20 20" width="18" height="18" aria-hidden="true">
    <path d="M2 16 7 9l4 3 7-9" fill="none" stroke="currentColor" stroke-width="2" />
    <circle cx="18" cy="3" r="2" fill="currentColor" />
  </svg>
)

function RunShell() {
  const { run, page, key, query } = route.value
  const { value: summary, error } = useSummary(run)
  // The folder's name begins with the name of the run.
  const name = summary?.name ?? run.replace(/-\d{8}-\d{6}(?:-\d+)?$/, '')
  const { place, a, b } = useLast(summary)
  const tabs: readonly (readonly [page: string, title: string, href: string])[] = [
    ['overview', 'Overview', hrefs.overview()],
    ...(summary?.kind === 'evaluation' ? [] : [['step', 'Groups', hrefs.step(place)] as const]),
    ['rollout', 'Rollout', a === null ? hrefs.step(place) : hrefs.rollout(a)],
    ['tokens', 'Tokens', a === null ? hrefs.step(place) : hrefs.tokens(a)],
    ['compare', 'Compare', a === null || b === null ? hrefs.step(place) : hrefs.compare(a, b)],
    ['health', 'Health', hrefs.health()],
  ]
  useKeys({ ...shared, ...Object.fromEntries(tabs.map(([, , href], index) => [String(index + 1), () => go(href)])) })
  useEffect(() => {
    document.title = `${run} · AWorld Train`
  }, [run])
  useEffect(() => {
    if (summary) followRun(summary)
  }, [summary])
  const view = () => {
    if (error !== null && !summary)
      return (
        <Empty title="This run cannot be read" main>
          {error}
        </Empty>
      )
    if (!summary) return null
    if (summary.kind === 'evaluation' && (page === 'overview' || page === 'step')) return <Evaluation summary={summary} />
    if (page === 'overview') return <Overview summary={summary} />
    if (page === 'step') return <Groups summary={summary} place={key} key={key} />
    if (page === 'rollout') return <Rollout summary={summary} rollout={key} key={key} />
    if (page === 'tokens') return <Tokens summary={summary} rollout={key} key={key} />
    if (page === 'compare')
      return (
        <Compare
          summary={summary}
          a={key}
          b={query.get('with') ?? ''}
          otherRun={query.get('in')}
          key={`${key} ${query.get('with')} ${query.get('in')}`}
        />
      )
    if (page === 'health') return <Health summary={summary} />
    return (
      <Empty title="Nothing at this address" main>
        “{page}” is no page of a run. The pages are named above.
      </Empty>
    )
  }
  return (
    <>
      <header class="top">
        <a class="brand" href={hrefs.runs()} title="All runs">
          <Mark />
          <b>{name}</b>
        </a>
        <span class="run">
          {summary && <i class={`state ${summary.status}`} />}
          <b class="status">{summary?.status ?? ''}</b>
          {run !== name && <span> {run.replace(`${name}-`, '')}</span>}
          <Progress summary={summary} />
        </span>
        <nav aria-label="Pages">
          {tabs.map(([name, title, href]) => (
            <a key={name} href={href} aria-current={page === name ? 'page' : undefined}>
              {title}
            </a>
          ))}
        </nav>
        <Tools />
      </header>
      <main class={`view-${page}`}>{view()}</main>
    </>
  )
}

const shared = {
  '?': () => {
    help.value = !help.value
  },
  t: turnTheme,
  '0': () => go(hrefs.runs()),
}

function RunsShell() {
  useKeys(shared)
  useEffect(() => {
    document.title = 'AWorld Train'
  }, [])
  return (
    <>
      <header class="top">
        <a class="brand" href={hrefs.runs()}>
          <Mark />
          <b>AWorld Train</b>
        </a>
        <nav aria-label="Pages">
          <a href={hrefs.runs()} aria-current="page">
            Runs
          </a>
        </nav>
        <Tools />
      </header>
      <main class="view-runs">
        <Runs />
      </main>
    </>
  )
}

function App() {
  const { run } = route.value
  return (
    <>
      {run === '' ? <RunsShell /> : <RunShell key={run} />}
      {help.value && <Help />}
    </>
  )
}

// Waiting for the fonts costs a frame, but then nothing moves, not even on canvas.
await Promise.all(['13px Geist', "13px 'Geist Mono'"].map((font) => document.fonts.load(font)))
render(<App />, document.getElementById('app')!)
