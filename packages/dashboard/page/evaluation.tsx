// An evaluation answers: what does it score, how sure is that, what did it cost, and which tasks are worth a look.
import type { EvaluationComparison, EvaluationNumbers, EvaluationView, RunSummary, TaskMean } from '@aworld-train/core'
import { always, clientOf, runs, useLoaded } from './data.ts'
import { dollars, fixed, integer, percent, points, range, seconds, shellWord, signed, visible, when } from './format.ts'
import { Matrix } from './matrix.tsx'
import { Rail } from './rail.tsx'
import { Rise, RiseHead } from './rises.tsx'
import { hrefs, route } from './route.ts'
import { Empty, Facts, Section } from './ui.tsx'

/** Most kinds of tasks that have a row of their own. */
const mostKinds = 12

const toMeasure = (mean: TaskMean | null | undefined) =>
  mean ? { rollouts: mean.tasks, reward: mean.value, interval: mean.interval } : null
/** Numbers of samples of which pass@k is reported. */
const powers = [2, 4, 8, 16, 32, 64]

/** A mean with its interval, as the number of the page. */
export function Figure({ numbers: { reward, interval }, isLive }: { numbers: EvaluationNumbers; isLive: boolean }) {
  return (
    <p class="figure">
      <b class={reward === null ? 'quiet' : ''}>{fixed(reward)}</b>
      <small>{interval === null ? `no rollout has a reward${isLive ? ' yet' : ''}` : range(interval)}</small>
    </p>
  )
}

/** How much of the evaluation the mean is of, in sentences. */
export function scopeOf({ scored, rollouts, failed, notStarted, unscored, bounds }: EvaluationNumbers, isLive: boolean): string {
  const parts = [
    failed > 0 ? `${integer(failed)} failed` : '',
    unscored > 0 ? `of ${integer(unscored)} the reward abstained` : '',
    notStarted > 0 ? `${integer(notStarted)} ${isLive ? 'are to come' : 'did not run'}` : '',
  ].filter(Boolean)
  const rest = bounds ? ` It is ${fixed(bounds[0])} to ${fixed(bounds[1])} with the rest wrong or right.` : ''
  return `${integer(scored.rollouts)} of ${integer(rollouts)} rollouts are in it${parts.length > 0 ? `; ${parts.join(', ')}` : ''}.${rest}`
}

function Headline({ summary, view }: { summary: RunSummary; view: EvaluationView }) {
  const { numbers } = view
  const { reward, interval, scored, tasks, byKind, passAtK, majority, mostFrequentAnswer } = numbers
  const isLive = summary.status === 'running'
  // Every row has its place from the start, so that nothing moves when its first reward comes.
  const kinds = [...new Set(view.tasks.map(({ kind }) => kind))]
  const samples = Math.max(1, ...view.tasks.map(({ cells }) => cells.length))
  const ks = [...new Set([...powers.filter((k) => k <= samples).map(String), ...Object.keys(passAtK)])].filter((k) => k !== '1')
  return (
    <Section
      class="headline"
      title="Reward"
      note={`${scored.tasks < tasks ? `${integer(scored.tasks)} of ` : ''}${integer(tasks)} tasks, 95 % interval`}
    >
      <Figure numbers={numbers} isLive={isLive} />
      <p class="quiet scope">{scopeOf(numbers, isLive)}</p>
      <table class="rises">
        <RiseHead of={['reward', '95 %']} />
        <tbody>
          <Rise name="all" only={reward === null || interval === null ? null : { rollouts: scored.tasks, reward, interval }} main />
          {kinds.length > 1 && kinds.slice(0, mostKinds).map((kind) => <Rise key={kind} name={kind} only={toMeasure(byKind[kind])} />)}
          {ks.map((k) => (
            <Rise key={`pass@${k}`} name={`pass@${k}`} only={toMeasure(passAtK[k])} />
          ))}
          {samples > 1 && <Rise name={`majority@${samples}`} only={toMeasure(majority)} />}
        </tbody>
      </table>
      {kinds.length > mostKinds && (
        <p class="quiet">
          The first {mostKinds} of {kinds.length} kinds; the filter below has all.
        </p>
      )}
      {mostFrequentAnswer !== null && <p class="quiet">Always the most frequent answer would score {fixed(mostFrequentAnswer)}.</p>}
    </Section>
  )
}

function Cost({ summary, view: { numbers, wallMs, comparison } }: { summary: RunSummary; view: EvaluationView }) {
  const { cost, rewardCost, usage, perRollout, answeredAs, unseen } = numbers
  const { promptTokens, cachedTokens, completionTokens } = usage
  return (
    <Section class="costs" title="Cost and time" note="of the agent's calls">
      <p class="figure">
        <b class={cost === null ? 'quiet' : ''}>{cost === null ? '–' : dollars(cost)}</b>
        <small>
          {cost === null
            ? 'no price is known'
            : unseen > 0
              ? 'of the calls that were recorded'
              : cost === 0
                ? 'its calls cost nothing'
                : 'at the prices of its models'}
        </small>
      </p>
      <Facts
        of={[
          [
            'tokens in',
            <>
              {integer(promptTokens)} <small>{promptTokens > 0 ? `${percent(cachedTokens / promptTokens, 0)} cached` : ''}</small>
            </>,
          ],
          ['tokens out', integer(completionTokens)],
          [
            'a rollout',
            `${perRollout.turns.toFixed(1)} turns, ${perRollout.toolCalls.toFixed(1)} tools, ${seconds(1000 * perRollout.seconds)}`,
          ],
          ['time', wallMs === null ? `begun ${when(summary.createdAt)}` : seconds(wallMs)],
          ['answered as', answeredAs.length === 0 ? 'not named' : answeredAs.map(visible).join(', ')],
          ...(rewardCost > 0 ? [['reward', `${dollars(rewardCost)} for its judges`] as const] : []),
          ...(unseen > 0 ? [['unseen', `${integer(unseen)} rollouts without a recorded call`] as const] : []),
        ]}
      />
      {comparison && <Against comparison={comparison} />}
    </Section>
  )
}

/** The comparison of the report, with the two side by side if the other one is among the runs. */
function Against({ comparison }: { comparison: EvaluationComparison }) {
  const list = useLoaded('runs', () => runs.list(), always)
  const other = list.value?.find(({ path, id }) => path === comparison.path || id === comparison.path.split(/[\\/]/).at(-1))
  return (
    <p class="against">
      <Difference comparison={comparison} /> against {visible(comparison.model ?? comparison.path)}, {when(comparison.startedAt)}.{' '}
      {other && <a href={hrefs.overlay([route.value.run, other.id])}>Side by side</a>}
    </p>
  )
}

/** The difference of two evaluations with its interval. */
export function Difference({ comparison: { difference, better, worse, equal, worst, notes } }: { comparison: EvaluationComparison }) {
  return (
    <>
      <b>{signed(difference.value, 3)}</b> {range(difference.interval)} on {integer(difference.tasks)} tasks: {integer(better)} better,{' '}
      {integer(worse)} worse, {integer(equal)} equal
      {worst && ` (${visible(worst.taskId)}: ${points(worst.from)} to ${points(worst.to)})`}
      {notes.length > 0 && <small> {notes.map(visible).join(' ')}</small>}
    </>
  )
}

export function Evaluation({ summary }: { summary: RunSummary }) {
  const id = route.value.run
  const { value: view, error } = useLoaded(`${id} evaluation`, () => clientOf(id).evaluation(), always)
  if (!view) return error === null ? null : <Empty title="This evaluation could not be read" main children={error} />
  const { failed } = view.numbers
  const path = shellWord(summary.path)
  return (
    <div class="overview evaluation">
      <h1 class="unseen">
        {summary.name}, {summary.status}
      </h1>
      <Headline summary={summary} view={view} />
      <Cost summary={summary} view={view} />
      <Rail summary={summary} commands={failed > 0 ? [['Run once more what failed', `eval ${path} --again failed`]] : []} />
      <Matrix sides={[{ run: id, name: summary.name, view }]} order={summary.status === 'running' ? 'dataset' : 'differs'} />
    </div>
  )
}
