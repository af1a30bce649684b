// One step as its groups, with their rewards, and the groups that taught nothing.
import type { RunSummary } from '@aworld-train/core'
import { comparedEvaluations } from '../src/compared-evaluations.ts'
import { isAnswered, usePlace } from './data.ts'
import { fixed, integer, percent, points, seconds, signed, spread, stepName, visible } from './format.ts'
import { type Group, groupsOf, isEvaluation, partnerOf, sampleName, sampleNumber, type Verdict, verdictOf } from './groups-of.ts'
import { Roles } from './roles.tsx'
import { filter, go, hrefs, route } from './route.ts'
import { Columns } from './shares.tsx'
import { Advantage, Chips, Dot, Dots, Empty, Facts, Middle, Section, useKeys } from './ui.tsx'

/** Samples of a large group that are listed. */
const mostSamples = 100

/** Answers and rewards of a group's samples, and how they differ from the one that is being read. */
export function Samples({ group, current }: { group: Group; current?: string }) {
  const isHeldOut = group.rows[0]!.split !== 'train'
  const { question, answer } = group.task
  const partner = partnerOf(group, group.rows[0]!.key)
  const shown = group.rows.filter((row, index) => index < mostSamples || row.key === current)
  const title = current ? (isHeldOut ? 'The evaluations of this task' : 'The group') : question
  return (
    <Section
      class="samples"
      title={title}
      note={
        answer === null ? (
          'no expected answer'
        ) : (
          <>
            expected <b>{answer}</b>
          </>
        )
      }
    >
      <div class="scroll">
        <table class="rows">
          <thead>
            <tr>
              <th scope="col">sample</th>
              <th scope="col">answer</th>
              <th scope="col">{isHeldOut ? 'reward' : 'advantage'}</th>
              {!isHeldOut && <th scope="col">calls</th>}
              <th scope="col">tokens</th>
              {current && <th scope="col">beside this</th>}
            </tr>
          </thead>
          <tbody>
            {shown.map((row) => {
              const sample = group.samples[group.rows.indexOf(row)]
              return (
                <tr key={row.key} class={row.key === current ? 'chosen' : ''}>
                  <th scope="row">
                    <a href={hrefs.rollout(row.key)}>
                      <Dot reward={row.reward} label={`reward ${points(row.reward)}`} />
                      {isHeldOut ? sampleName(row) : sampleNumber(row)}
                    </a>
                    {row.attempt > 0 && <small> attempt {row.attempt + 1}</small>}
                  </th>
                  <td class="answer" title={row.answer ?? ''}>
                    {row.answer !== null ? visible(row.answer) : <span class="quiet">none, {row.stopReason ?? row.status}</span>}
                  </td>
                  <td>
                    {isHeldOut ? points(row.reward) : <Advantage value={sample?.reason ? 0 : (sample?.advantage ?? null)} none="–" />}
                  </td>
                  {!isHeldOut && <td>{row.toolCalls}</td>}
                  <td>{integer(row.sampledTokens)}</td>
                  {current && <td>{row.key === current ? '' : <a href={hrefs.compare(current, row.key)}>compare</a>}</td>}
                </tr>
              )
            })}
          </tbody>
        </table>
      </div>
      {group.rows.length > shown.length && (
        <p class="more">
          {integer(shown.length)} of {integer(group.rows.length)} samples. In a rollout ← and → go through all.
        </p>
      )}
      {!current && partner !== null && (
        <p class="more">
          <a href={hrefs.compare(group.rows[0]!.key, partner)}>Compare two of them</a>
        </p>
      )}
    </Section>
  )
}

const titles: Readonly<Record<string, string>> = {
  all: 'All',
  teaches: 'Teaches',
  nothing: 'Teaches nothing',
  waiting: 'Not trained yet',
  learned: 'Learned',
  same: 'Same',
  unlearned: 'Unlearned',
}

function GroupRow({ group, isChosen, verdict }: { group: Group; isChosen: boolean; verdict: Verdict }) {
  const isHeldOut = group.rows[0]!.split !== 'train'
  const { mean, deviation } = spread(group.rows.map(({ reward }) => reward ?? 0))
  const { name, why } = verdict
  const advantages = group.samples.flatMap((sample) =>
    sample && sample.reason === null && sample.advantage !== null ? [sample.advantage] : [],
  )
  const choose = (event: Event) => {
    if (!(event.target as Element).closest('a')) filter({ group: group.id })
  }
  return (
    // Keyboards and screen readers use the button in the row.
    <tr class={`${isChosen ? 'chosen' : ''} ${name}`} onClick={choose}>
      <td>{group.label}</td>
      <th scope="row">
        <button type="button" aria-pressed={isChosen} aria-label={group.task.question}>
          <Middle text={group.task.question} />
        </button>
      </th>
      <td>
        <Dots group={group} />
      </td>
      {!isHeldOut && (
        <>
          <td>{fixed(mean, 2)}</td>
          <td>{fixed(deviation, 2)}</td>
          <td class="wide">
            {advantages.length === 0 ? (
              <span class="quiet">{name === 'waiting' ? '–' : '0'}</span>
            ) : (
              <>
                <span class="up">{signed(Math.max(...advantages))}</span> <span class="down">{signed(Math.min(...advantages))}</span>
              </>
            )}
          </td>
          <td class="wide">{integer(group.rows.reduce((sum, { sampledTokens }) => sum + sampledTokens, 0))}</td>
        </>
      )}
      <td class="wide verdict">
        <span class={name}>{why}</span>
      </td>
    </tr>
  )
}

/** Most rows of a table that are drawn at once. A click adds more. */
const mostRows = 400

export function Groups({ summary, place }: { summary: RunSummary; place: string }) {
  const { query } = route.value
  const list = usePlace(place)
  const isHeldOut = isEvaluation(place)
  const { split, before, after } = comparedEvaluations(summary.evaluations)
  const compared = before && after ? ([before.name, after.name] as const) : null
  const all = list.value ? groupsOf(list.value, summary.evaluations) : []
  const record = summary.steps.find(({ step }) => String(step) === place)
  const show = query.get('show') ?? 'all'
  const kind = query.get('kind')
  const search = query.get('find') ?? ''
  const kinds = [...new Set(all.map((group) => group.kind))].filter(Boolean)
  const training = summary.settings['training'] as { steps?: number; firstSamples?: number | null; samplesPerPrompt?: number } | undefined
  const samplesPerPrompt = training?.firstSamples ? (training.samplesPerPrompt ?? null) : null
  const verdicts = new Map(all.map((group) => [group, verdictOf(group, compared, samplesPerPrompt)]))
  const names = [
    'all',
    ...(isHeldOut
      ? ['learned', 'same', 'unlearned']
      : ['teaches', 'nothing', ...([...verdicts.values()].some(({ name }) => name === 'waiting') ? ['waiting'] : [])]),
  ]
  const matches = (group: Group, which: string) => which === 'all' || verdicts.get(group)!.name === which
  const words = search.toLowerCase()
  const groups = all.filter(
    (group) => matches(group, show) && (kind === null || group.kind === kind) && group.task.question.toLowerCase().includes(words),
  )
  const chosen = groups.find(({ id }) => id === query.get('group')) ?? groups[0]
  const places = summary.steps.map(({ step }) => String(step))
  const move = (by: number) => {
    const next = groups[(chosen ? groups.indexOf(chosen) : -1) + by]
    if (!next) return
    filter({ group: next.id })
    setTimeout(() => document.querySelector('tr.chosen')?.scrollIntoView({ block: 'nearest' }))
  }
  const turn = (by: number) => {
    const order = [...(split === null ? [] : [split]), ...places]
    const next = order[order.indexOf(place) + by]
    if (next !== undefined) go(hrefs.step(next, show === 'all' ? {} : { show }))
  }
  const first = chosen?.rows[0]?.key
  const partner = chosen && first !== undefined ? partnerOf(chosen, first) : null
  const keys = {
    j: () => move(1),
    k: () => move(-1),
    ArrowRight: () => turn(1),
    ArrowLeft: () => turn(-1),
    Enter: () => first !== undefined && go(hrefs.rollout(first)),
    c: () => first !== undefined && partner !== null && go(hrefs.compare(first, partner)),
  }
  useKeys(keys, isAnswered(list))
  const scrubber = (
    <div class="scrubber">
      {split !== null && (
        <a href={hrefs.step(split)} class="button" aria-current={isHeldOut ? 'true' : undefined}>
          Held-out
        </a>
      )}
      <Columns
        label="Steps"
        tones={['t-bad', 't-ink', 't-good']}
        rows={summary.steps.map(({ groups: { wrong, mixed, right } }) => [wrong, mixed, right])}
        names={summary.steps.map(({ step }) => `step ${step}`)}
        height={36}
        current={places.indexOf(place)}
        href={(index) => hrefs.step(places[index]!)}
        {...(summary.status === 'running' && { planned: training?.steps ?? 0 })}
      />
      <p class="key">
        <span>
          <i class="swatch t-good" />
          all right
        </span>
        <span>
          <i class="swatch t-ink" />
          mixed: teaches
        </span>
        <span>
          <i class="swatch t-bad" />
          all wrong
        </span>
      </p>
    </div>
  )
  const m = record?.metrics
  return (
    <>
      <div class="title">
        <h1>{stepName(place)}</h1>
        {record && (
          <Facts
            of={[
              [
                'reward',
                <>
                  <b>{fixed(record.reward)}</b>{' '}
                  <small>
                    [{fixed(record.interval[0], 2)}, {fixed(record.interval[1], 2)}]
                  </small>
                </>,
              ],
              [
                'groups that teach',
                <>
                  <b>{record.groups.mixed}</b> of {record.groups.right + record.groups.mixed + record.groups.wrong}
                </>,
              ],
              [
                'tokens trained',
                m ? (
                  <>
                    <b>{integer(record.trainedTokens)}</b> of {integer(record.tokens * record.rollouts)}{' '}
                    <small>{percent(record.trainedTokens / (record.tokens * record.rollouts), 0)}</small>
                  </>
                ) : (
                  <span class="quiet">not trained yet</span>
                ),
              ],
              [
                'weights',
                record.weightVersion === null ? (
                  '–'
                ) : (
                  <>
                    v{record.weightVersion - 1} → v{record.weightVersion}
                  </>
                ),
              ],
              ['time', m?.['stepMs'] === undefined ? '–' : seconds(m['stepMs'])],
            ]}
          />
        )}
        {isHeldOut && before && (
          <Facts
            of={[
              ['before', <b>{fixed(before.reward)}</b>],
              ['after', <b>{fixed(after?.reward)}</b>],
              ['learned', all.filter((group) => matches(group, 'learned')).length],
              ['unlearned', all.filter((group) => matches(group, 'unlearned')).length],
            ]}
          />
        )}
      </div>
      {m && <Roles metrics={m} policyOfAgent={summary.policyOfAgent} />}
      {scrubber}
      <div class="bar">
        <Chips
          label="Show"
          of={names.map((name) => [
            name,
            <>
              {titles[name]} <small>{all.filter((group) => matches(group, name)).length}</small>
            </>,
          ])}
          chosen={show}
          onChoose={(name) => filter({ show: name === 'all' ? null : name, group: null })}
        />
        {kinds.length > 1 && (
          <Chips
            label="Kind of task"
            of={kinds.map((name) => [name, visible(name)])}
            chosen={kind}
            onChoose={(name) => filter({ kind: kind === name ? null : name, group: null })}
          />
        )}
        <input
          type="search"
          placeholder="Find in tasks"
          aria-label="Find in tasks"
          value={search}
          onInput={(event) => filter({ find: event.currentTarget.value || null, group: null })}
        />
      </div>
      {list.error !== null && <Empty title="These rollouts could not be read">{list.error}</Empty>}
      {list.value && all.length === 0 && (
        <Empty title={isHeldOut ? 'No such evaluation' : 'No such step'}>
          {places.length === 0
            ? 'The run has no step yet.'
            : `The run has steps ${places[0]} to ${places.at(-1)}${split === null ? '' : ', and the held-out evaluation'}.`}
        </Empty>
      )}
      {all.length > 0 && groups.length === 0 && (
        <Empty title="No group matches">
          {stepName(place)} has {all.length} groups, none of them with all of these filters.
        </Empty>
      )}
      {groups.length > 0 && (
        <div class="split">
          <table class={`rows groups${isHeldOut ? ' held-out' : ''}`}>
            <thead>
              <tr>
                <th scope="col">#</th>
                <th scope="col">task</th>
                <th scope="col">{isHeldOut ? 'evaluations' : 'rewards'}</th>
                {!isHeldOut && (
                  <>
                    <th scope="col">mean</th>
                    <th scope="col">std</th>
                    <th scope="col" class="wide">
                      advantages
                    </th>
                    <th scope="col" class="wide">
                      tokens
                    </th>
                  </>
                )}
                <th scope="col" class="wide">
                  {isHeldOut ? 'change' : 'teaches'}
                </th>
              </tr>
            </thead>
            <tbody>
              {groups.slice(0, mostRows).map((group) => (
                <GroupRow key={group.id} group={group} isChosen={group === chosen} verdict={verdicts.get(group)!} />
              ))}
            </tbody>
            {groups.length > mostRows && (
              <caption>
                The first {mostRows} of {groups.length}; filters find the others.
              </caption>
            )}
          </table>
          {chosen && (
            <div class={`sheet${query.has('group') ? ' open' : ''}`}>
              <button type="button" class="close" onClick={() => filter({ group: null })}>
                Close
              </button>
              <Samples group={chosen} />
            </div>
          )}
        </div>
      )}
    </>
  )
}
