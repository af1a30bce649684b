// One episode: its invocations and their calls over time, and the conversation of one of them.
import type { RunSummary } from '@aworld-train/core'
import { useEffect, useMemo } from 'preact/hooks'
import { Absent, Head } from './absent.tsx'
import { callsOf } from './calls.ts'
import { Talk } from './conversation.tsx'
import { fixed, integer, points, prose, visible } from './format.ts'
import { Samples } from './groups.tsx'
import { partnerOf } from './groups-of.ts'
import { lanesOf, mainInvocation } from './lanes.ts'
import { filter, go, hrefs, route } from './route.ts'
import { Screens, WatchDesktop } from './screens.tsx'
import { Invocations, Timeline, TimeParts } from './timeline.tsx'
import { Advantage, Chips, Dot, Facts, Section, useKeys } from './ui.tsx'
import { useRollout } from './use-rollout.ts'
import { Attempts } from './workers.tsx'

export function Rollout({ summary, rollout }: { summary: RunSummary; rollout: string }) {
  const { trace, group, error: problem, isRead } = useRollout(rollout, summary)
  const { query } = route.value
  const chosen = query.get('call')
  const siblings = group?.rows ?? []
  const place = siblings.findIndex(({ key }) => key === rollout)
  const turn = (by: number) => {
    const next = siblings[place + by]
    if (next) go(hrefs.rollout(next.key))
  }
  const partner = group && partnerOf(group, rollout)
  const row = trace?.row
  const start = row ? Math.min(row.queuedAt, row.startedAt ?? row.queuedAt) : 0
  const calls = useMemo(() => (trace ? callsOf(trace, start) : []), [trace, start])
  const invocations = trace?.invocations ?? []
  const roles = [...new Set(invocations.map(({ agent }) => agent))]
  const role = roles.find((name) => name === query.get('agent')) ?? null
  const lanes = useMemo(() => lanesOf(invocations, start, role), [trace, start, role])
  const byInvocation = useMemo(() => Map.groupBy(calls, ({ invocation }) => invocation), [calls])
  const chosenCall = calls.find(({ id }) => id === chosen)
  const wanted = chosenCall?.invocation ?? query.get('invocation')
  const shown =
    invocations.find(({ id }) => id === wanted) ?? lanes.find(({ invocation }) => role === null || invocation.agent === role)?.invocation
  const own = (shown && byInvocation.get(shown.id)) ?? (shown ? [] : calls)
  const current = chosenCall ?? own[0]
  const pick = (id: string) => filter({ call: id, invocation: null })
  const show = (invocation: string) => filter({ invocation, call: null })
  /** The next call of the invocation, and after its last one the first of the lane below. */
  const move = (by: number) => {
    const all = lanes.flatMap(({ invocation: { id } }) => byInvocation.get(id) ?? [])
    const next = all[(current ? all.indexOf(current) : -1) + by]
    if (next) pick(next.id)
  }
  const isThere = trace !== null
  useEffect(() => {
    if (chosen !== null && isThere) document.querySelector(`[data-call="${CSS.escape(chosen)}"]`)?.scrollIntoView({ block: 'nearest' })
  }, [chosen, isThere])
  const tokens = hrefs.tokens(rollout, shown && shown !== mainInvocation(invocations) ? { invocation: shown.id } : {})
  const keys = {
    j: () => move(1),
    k: () => move(-1),
    ArrowRight: () => turn(1),
    ArrowLeft: () => turn(-1),
    c: () => partner && go(hrefs.compare(rollout, partner)),
    Enter: () => go(tokens),
  }
  useKeys(keys, isRead)
  if (!trace || !row) {
    if (!isRead) return null
    return (
      <>
        {group && <Head group={group} rollout={rollout} />}
        <Absent rollout={rollout} group={group} summary={summary} error={problem} />
      </>
    )
  }
  const { task, error } = trace
  const end = [...calls, ...lanes].reduce((last, { at, ms }) => Math.max(last, (at ?? 0) + ms), Math.max((row.endedAt ?? start) - start, 1))
  const samples = group?.samples[place] ?? null
  const mean = siblings.length > 0 ? siblings.reduce((sum, { reward }) => sum + (reward ?? 0), 0) / siblings.length : 0
  return (
    <>
      {group ? <Head group={group} rollout={rollout} /> : <h1>{visible(task?.question ?? rollout).slice(0, 400)}</h1>}
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
          ['', <a href={tokens}>Tokens</a>],
          ...(row.status === 'running' && summary.desktopUrl !== null
            ? [['', <WatchDesktop page={summary.desktopUrl} rollout={rollout} />] as const]
            : []),
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
      <Screens calls={trace.toolCalls} start={start} chosen={current?.id} choose={pick} />
      <div class="split rollout">
        <Section
          class={`timeline${invocations.length > 1 ? ' agents' : ''}`}
          title="Time"
          note={<TimeParts waitMs={row.waitMs} end={end} />}
        >
          {invocations.length > 1 && (
            <Invocations count={invocations.length} calls={calls}>
              {roles.length > 1 && (
                <Chips
                  label="Agent"
                  of={[['', 'all'], ...roles.map((name) => [`=${name}`, visible(name)] as const)]}
                  chosen={role === null ? '' : `=${role}`}
                  onChoose={(name) => filter({ agent: name === '' ? null : name.slice(1), invocation: null, call: null })}
                />
              )}
            </Invocations>
          )}
          <Timeline
            invocations={invocations.length}
            lanes={lanes}
            byInvocation={byInvocation}
            shown={shown?.id}
            calls={own}
            current={current}
            end={end}
            show={show}
            pick={pick}
          />
          <Attempts trace={trace} />
          {/* Calls that come would move it. */}
          {group && row.status !== 'running' && <Samples group={group} current={rollout} />}
        </Section>
        <Section class="talk" title="Conversation" note={invocations.length > 1 && shown ? visible(shown.id) : undefined}>
          {shown && <Talk key={shown.id} trace={trace} invocation={shown} chosen={current} choose={pick} />}
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
