import type { RunSummary } from '@aworld-train/core'
import { comparedEvaluations } from '../src/compared-evaluations.ts'
import { brief, fixed, integer, percent, points, visible } from './format.ts'
import { hrefs } from './route.ts'

/** A fact about a run that is worth a look, with a link to its evidence. */
interface Finding {
  readonly level: 'warn' | 'ok'
  readonly title: string
  readonly text: string
  readonly href?: string
  readonly link?: string
}

const lateSteps = 10
const plural = (count: number, noun: string) => `${count === 1 ? 'One' : integer(count)} ${noun}${count === 1 ? '' : 's'}`

/** Findings to look at first: warnings, then checks that hold. */
export function findingsOf(summary: RunSummary): Finding[] {
  const findings: Finding[] = []
  /** Adds a warning. Without evidence of its own it links to the health of the whole run. */
  const warn = (title: string, text: string, href = hrefs.health(), link = href === hrefs.health() ? 'Health' : 'Read one') =>
    findings.push({ level: 'warn', title: visible(title), text: visible(text), href, link })
  const trained = summary.steps.filter(({ metrics }) => metrics !== null)
  if (summary.status === 'interrupted')
    warn('The run was interrupted', 'No process works on it, and it has not ended; the command that began it goes on.')
  const { status, failure } = summary
  if (status === 'failed')
    warn(
      `The run failed${failure ? `: ${failure.code}` : ''}`,
      `${failure ? [failure.message, failure.remedy ?? ''].join(' ').trim().slice(0, 600) : 'It does not say why.'} What was trained before is kept.`,
    )

  const { cancelled, interrupted } = summary.rollouts
  if (cancelled + interrupted > 0) {
    const example = summary.incomplete.find(({ status }) => status === 'cancelled' || status === 'interrupted')
    const text = `${integer(cancelled)} given up, ${integer(interrupted)} with a process that ended. They run again where the run needs them.`
    warn(`${plural(cancelled + interrupted, 'rollout')} without a result`, text, example && hrefs.rollout(example.key))
  }

  const late = trained.slice(-lateSteps)
  const groups = late.reduce((sum, step) => sum + step.groups.right + step.groups.mixed + step.groups.wrong, 0)
  const idle = groups - late.reduce((sum, step) => sum + step.groups.mixed, 0)
  const last = late.at(-1)
  if (last && groups > 0 && idle / groups > 0.5)
    warn(
      `${percent(idle / groups, 0)} of the last ${groups} groups taught nothing`,
      'Every sample earned the same. Harder tasks or fewer samples would cost less.',
      hrefs.step(String(last.step), { show: 'nothing' }),
      `Step ${last.step}`,
    )

  for (const { code, count, rollout, message, source } of summary.errors)
    warn(
      `${plural(count, 'rollout')} failed: ${code}${source === null ? '' : ` at ${source}`}`,
      `The first: ${message.slice(0, 200)}`,
      hrefs.rollout(rollout),
    )
  const unparsed = Object.entries(summary.unparsed.byKind)
  const calls = unparsed.reduce((sum, [, count]) => sum + count, 0)
  if (calls > 0) {
    const [example] = summary.unparsed.rollouts
    warn(
      `${plural(calls, 'tool call')} did not parse`,
      `${unparsed.map(([kind, count]) => `${kind} ${count}`).join(', ')}.`,
      example === undefined ? undefined : hrefs.tokens(example),
    )
  }
  for (const [reason, count] of Object.entries(summary.stopReasons)) {
    const example = summary.incomplete.find(({ stopReason, error }) => stopReason === reason && error === null)
    if (reason !== 'completed' && reason !== 'failed')
      warn(
        `${plural(count, 'rollout')}: ${reason.replaceAll('-', ' ')}`,
        example ? `${example.key}, reward ${points(example.reward)}, ${plural(example.turns, 'turn').toLowerCase()}.` : '',
        example && hrefs.rollout(example.key),
        'Read it',
      )
  }
  for (const { code, count, message } of summary.warnings.filter(({ code }) => code !== 'CONFIG_NOTE'))
    warn(`${code.toLowerCase().replaceAll('_', ' ')}${count > 1 ? `, ${count} times` : ''}`, message.slice(0, 300))

  const { before, after } = comparedEvaluations(summary.evaluations)
  if (before && after && after.interval[1] < before.interval[0])
    warn(
      'Held-out reward fell',
      `From ${fixed(before.reward)} to ${fixed(after.reward)}; the intervals do not meet.`,
      hrefs.step(after.split, { show: 'unlearned' }),
      'Which tasks',
    )

  const gaps = trained.flatMap(({ metrics }) => metrics!['maxLogprobDifference'] ?? [])
  if (gaps.length > 0) {
    const training = summary.settings['training'] as { logprobCheck?: { tolerance?: number } } | undefined
    const tolerance = training?.logprobCheck?.tolerance
    const greatest = Math.max(...gaps)
    const text = `Greatest logprob difference ${brief(greatest)}${tolerance === undefined ? '' : `, ${brief(tolerance)} allowed`}.`
    const { step } = trained.find(({ metrics }) => metrics!['maxLogprobDifference'] === greatest)!
    if (tolerance !== undefined && greatest > tolerance)
      warn('Sampler and trainer disagree', text, hrefs.step(String(step)), `Step ${step}`)
    else
      findings.push({
        level: 'ok',
        title: tolerance === undefined ? 'Sampler and trainer are compared' : 'Sampler and trainer agree',
        text,
      })
  }
  const { ledger } = summary
  if (summary.status === 'finished' && ledger.sampled > 0) {
    const counted = `${integer(ledger.sampled)} counted again from ${integer(summary.rollouts.done)} episodes.`
    if (ledger.unexplained === 0) findings.push({ level: 'ok', title: 'Every token is accounted for', text: counted })
    else warn(`${plural(ledger.unexplained, 'token')} unexplained`, counted)
  }
  return findings
}
