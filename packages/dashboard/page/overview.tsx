// The overview answers: did it work, what did it cost, what needs a look, what to type next.
import type { EvaluationSummary, RunSummary, StepSummary } from '@aworld-train/core'
import { useState } from 'preact/hooks'
import { comparedEvaluations } from '../src/compared-evaluations.ts'
import { Chart, hoverStep, SmallChart } from './chart.tsx'
import { fixed, integer, seconds, signed, visible } from './format.ts'
import { multiplesOf } from './multiples.ts'
import { Rail } from './rail.tsx'
import { Rise, RiseHead } from './rises.tsx'
import { go, hrefs } from './route.ts'
import { Columns, type Part, Share } from './shares.tsx'
import { Section } from './ui.tsx'

/** Most kinds of tasks that have a row of their own. */
const mostKinds = 12

function HeldOut({ summary }: { summary: RunSummary }) {
  const { split, before, after, greedy } = comparedEvaluations(summary.evaluations)
  if (!before || split === null)
    return (
      <Section class="headline" title="Held-out reward">
        <p class="figure">
          <b class="quiet">–</b>
          <small>not evaluated{summary.status === 'running' ? ' yet' : ''}</small>
        </p>
      </Section>
    )
  const difference = after ? after.reward - before.reward : 0
  const kinds = Object.keys(before.byKind)
  return (
    <Section class="headline" title="Held-out reward" note={`${before.tasks} tasks, 95 % interval`}>
      <p class="figure">
        <span>{fixed(before.reward)}</span>
        <svg viewBox="0 0 28 12" width="28" height="12" role="img" aria-label="to">
          <path d="M0 6h25M20 1l6 5-6 5" fill="none" stroke="currentColor" stroke-width="1.5" />
        </svg>
        {after ? (
          <>
            <b>{fixed(after.reward)}</b>
            <small>
              [{fixed(after.interval[0])}, {fixed(after.interval[1])}]
              <br />
              {signed(difference, 3)}
            </small>
          </>
        ) : (
          <>
            <b class="quiet">–</b>
            <small>after training{summary.status === 'running' ? ', not there yet' : ': not evaluated'}</small>
          </>
        )}
      </p>
      <table class="rises">
        <RiseHead of={['before', 'after']} />
        <tbody>
          <Rise name="all" before={before} after={after} main />
          {kinds.length > 1 &&
            kinds
              .slice(0, mostKinds)
              .map((kind) => <Rise key={kind} name={kind} before={before.byKind[kind]!} after={after?.byKind[kind] ?? null} />)}
          {greedy.before && <Rise name="all, greedy" before={greedy.before} after={greedy.after} />}
        </tbody>
      </table>
      <p class="more">
        <a href={hrefs.step(split)}>
          All {before.tasks} tasks{kinds.length > mostKinds ? ` of ${kinds.length} kinds` : ''}
          {after ? ', before and after' : ''}
        </a>
      </p>
    </Section>
  )
}

const bounded = (steps: readonly StepSummary[]) => steps.every(({ interval: [low, high] }) => low >= 0 && high <= 1)

function Curve({ summary, steps }: { summary: RunSummary; steps: readonly StepSummary[] }) {
  const { before, after } = comparedEvaluations(summary.evaluations)
  const at = hoverStep.value
  const step = steps[at === null ? steps.length - 1 : Math.min(at, steps.length - 1)]
  const end = (one: EvaluationSummary | null, place: number, isAfter: boolean) =>
    one ? [{ at: place, value: one.reward, interval: one.interval, isAfter }] : []
  if (!step) return <Section class="curve" title="Training reward" note="no step yet" />
  return (
    <Section
      class="curve"
      title="Training reward"
      note={
        <>
          <span class="readout">
            step <b>{step.step}</b>
          </span>
          <span class="readout">
            <b>{fixed(step.reward)}</b> [{fixed(step.interval[0], 2)}, {fixed(step.interval[1], 2)}]
          </span>
        </>
      }
    >
      <Chart
        label={`Mean reward of each step, from ${fixed(steps[0]!.reward)} to ${fixed(steps.at(-1)!.reward)}, with held-out reward before and after`}
        xs={steps.map((each) => each.step)}
        values={steps.map(({ reward }) => reward)}
        band={[steps.map(({ interval }) => interval[0]), steps.map(({ interval }) => interval[1])]}
        {...(bounded(steps) && { range: [0, 1.02] as const })}
        height={232}
        axes
        onPick={(index) => steps[index] && go(hrefs.step(String(steps[index].step)))}
        ends={[...end(before, steps[0]!.step - 1, false), ...end(after, steps.at(-1)!.step + 0.9, true)]}
      />
      <p class="key">
        <span>
          <i class="k-line" />
          mean of {step.rollouts} rollouts
        </span>
        <span>
          <i class="k-band" />
          95 % interval
        </span>
        <span>
          <i class="k-end" />
          held-out, before
        </span>
        <span>
          <i class="k-end after" />
          after
        </span>
      </p>
    </Section>
  )
}

function Multiples({ steps }: { steps: readonly StepSummary[] }) {
  const [all, showAll] = useState(false)
  if (steps.length === 0) return <Section class="multiples" title="Each step" note="no step is trained yet" />
  const { main, others } = multiplesOf(steps)
  const at = hoverStep.value
  const shown = all ? [...main, ...others] : main
  return (
    <Section
      class="multiples"
      title="Each step"
      note={
        <>
          <span class="readout">
            {at === null || !steps[at] ? (
              'last step'
            ) : (
              <>
                step <b>{steps[at].step}</b>
              </>
            )}
          </span>
          {others.length > 0 && (
            <button type="button" class="link" aria-pressed={all} onClick={() => showAll(!all)}>
              {all ? 'Fewer' : `All ${main.length + others.length} metrics`}
            </button>
          )}
        </>
      }
    >
      <div>
        {shown.map((multiple) => (
          <SmallChart
            key={multiple.name}
            multiple={multiple}
            label={`${multiple.name} of each step`}
            xs={steps.map(({ step }) => step)}
            onPick={(index) => steps[index] && go(hrefs.step(String(steps[index].step)))}
          />
        ))}
      </div>
    </Section>
  )
}

const ledgerTones: Readonly<Record<string, string>> = { evaluation: 't-grey', 'zero-variance-group': 't-bad' }

function Ledger({ summary, steps }: { summary: RunSummary; steps: readonly StepSummary[] }) {
  const { ledger } = summary
  const { split } = comparedEvaluations(summary.evaluations)
  const middle = steps[Math.floor(steps.length / 2)]
  const agents = Object.entries(summary.agents)
  const reasons = Object.entries(ledger.untrained).sort((a, b) => b[1] - a[1])
  const { status } = summary
  // The last samples have no step yet, and get none in a run that stopped. A recording has no steps at all.
  const isOpen = status !== 'finished'
  const parts: Part[] = [
    {
      name: 'trained',
      value: ledger.trained,
      tone: 't-data',
      text: integer(ledger.trained),
      href: middle && hrefs.step(String(middle.step), { show: 'teaches' }),
    },
    ...reasons.map(([reason, value]) => ({
      name: reason.replaceAll('-', ' ').replace('variance group', 'variance groups'),
      value,
      tone: ledgerTones[reason] ?? 't-line',
      text: integer(value),
      href:
        reason === 'evaluation'
          ? split === null
            ? undefined
            : hrefs.step(split)
          : middle && hrefs.step(String(middle.step), { show: 'nothing' }),
    })),
    {
      name: status === 'running' ? 'not decided yet' : isOpen ? 'in no step when it stopped' : 'unexplained',
      value: ledger.unexplained,
      tone: isOpen ? 't-line' : 't-alarm',
      text: integer(ledger.unexplained),
    },
  ]
  const untrained = ({ untrainedTokens }: StepSummary) => Object.values(untrainedTokens).reduce((sum, tokens) => sum + tokens, 0)
  return (
    <Section class="ledger" title="Where each token went" note={`${integer(ledger.sampled)} sampled`}>
      <Share label="Sampled tokens" parts={parts} total={ledger.sampled} />
      {agents.length > 1 && (
        <table class="rows plain">
          <thead>
            <tr>
              <th scope="col">agent</th>
              <th scope="col">sampled</th>
              <th scope="col">trained</th>
              <th scope="col">not trained</th>
            </tr>
          </thead>
          <tbody>
            {agents.map(([name, { sampled, trained, untrained: reasonsOf }]) => (
              <tr key={name}>
                <th scope="row">
                  {visible(name)}
                  {summary.policyOfAgent[name] !== undefined && <small> {visible(summary.policyOfAgent[name])}</small>}
                </th>
                <td>{integer(sampled)}</td>
                <td>
                  <b>{integer(trained)}</b>
                </td>
                <td>
                  {Object.entries(reasonsOf)
                    .map(([reason, tokens]) => `${reason.replaceAll('-', ' ')} ${integer(tokens)}`)
                    .join(', ') || '–'}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      <Columns
        label="Tokens of each step, trained and not trained"
        tones={['t-bad', 't-data']}
        rows={steps.map((step) => [untrained(step), step.trainedTokens])}
      />
    </Section>
  )
}

const phaseTones: Readonly<Record<string, string>> = { rollout: 't-data', update: 't-ink', evaluation: 't-grey' }

function Phases({ summary, steps }: { summary: RunSummary; steps: readonly StepSummary[] }) {
  const { times } = summary
  const metric = ({ metrics }: StepSummary, name: string) => metrics?.[name] ?? 0
  const columns = steps.map((step) => [
    Math.max(0, metric(step, 'stepMs') - metric(step, 'updateMs') - metric(step, 'rolloutMs')),
    metric(step, 'updateMs'),
    metric(step, 'rolloutMs'),
  ])
  const sum = (index: number) => columns.reduce((total, column) => total + column[index]!, 0)
  const phases = times
    ? Object.entries(times.phasesMs)
    : [['rollout', sum(2)] as const, ['update', sum(1)] as const, ['other', sum(0)] as const]
  const total = times?.wallMs ?? phases.reduce((all, [, ms]) => all + ms, 0)
  const sorted = [...phases].sort((a, b) => b[1] - a[1])
  const small = sorted.filter(([name, ms]) => ms < 0.02 * total && !(name in phaseTones))
  const smallMs = small.reduce((all, [, ms]) => all + ms, 0)
  const rest = total - sorted.reduce((all, [, ms]) => all + ms, 0)
  const parts: Part[] = [
    ...sorted
      .filter((phase) => !small.includes(phase))
      .map(([name, value]) => ({ name, value, tone: phaseTones[name] ?? 't-soft', text: seconds(value) })),
    ...(small.length > 0 ? [{ name: small.map(([name]) => name).join(', '), value: smallMs, tone: 't-soft', text: seconds(smallMs) }] : []),
    ...(rest > 0.5 ? [{ name: 'in no phase', value: rest, tone: 't-line', text: seconds(rest) }] : []),
  ]
  return (
    <Section
      class="phases"
      title="Where the time went"
      note={times ? `${seconds(times.wallMs)} wall, ${seconds(times.cpuMs)} CPU` : `${seconds(total)} in steps so far`}
    >
      <Share label="Wall time" parts={parts} total={total} />
      <Columns label="Time of each step: update, rollout, other" tones={['t-line', 't-ink', 't-data']} rows={columns} />
    </Section>
  )
}

export function Overview({ summary }: { summary: RunSummary }) {
  const steps = summary.steps.filter(({ rollouts }) => rollouts > 0)
  // A recording by serve has no settings of a trainer.
  const isTraining = Object.keys(summary.settings).length > 0
  const isGoing = isTraining && summary.status === 'running'
  return (
    <div class={`overview${isGoing ? ' going' : ''}`}>
      <h1 class="unseen">
        {summary.name}, {summary.status}
      </h1>
      <HeldOut summary={summary} />
      <Curve summary={summary} steps={steps} />
      {(steps.length > 0 || isGoing) && <Multiples steps={isGoing && steps.every(({ metrics }) => metrics === null) ? [] : steps} />}
      <Ledger summary={summary} steps={steps} />
      <Phases summary={summary} steps={steps} />
      <Rail
        summary={summary}
        commands={
          (['interrupted', 'stopped', 'failed'] as readonly string[]).includes(summary.status) && isTraining
            ? [['Go on where it was', 'train']]
            : []
        }
      />
    </div>
  )
}
