import { basename } from 'node:path'
import type { EvaluationComparison, EvaluationReport } from '@aworld-train/core'
import { typedCommand, typedPath } from '../typed-command.ts'
import { counted } from './counted.ts'
import { dollars } from './dollars.ts'
import { wrapLabelled } from './text-width.ts'

/** An interval wider than this is said to be wide: it cannot tell most models apart. */
const wide = 0.2

type Line = readonly [label: string, text: string]

/** The report of an evaluation in lines of at most `columns`. */
export function renderEvaluation(report: EvaluationReport, columns = 80): string {
  const { unseen, notStarted, rollouts, path, comparison } = report
  const lines: Line[] = [
    ...rewardLines(report),
    ...passLines(report),
    ...kindLines(report),
    ...failureLines(report),
    ...(notStarted > 0
      ? [
          [
            'left out',
            `${notStarted} of ${rollouts} rollouts: ${report.cost === null ? 'the budget' : dollars(report.cost + report.rewardCost)} was spent; the same command with a larger --budget goes on`,
          ] as const,
        ]
      : []),
    ['cost', costText(report)],
    ...(unseen > 0
      ? [['unseen', `${counted(unseen, 'rollout')} answered without the gateway: turns, tokens and cost are not known`] as const]
      : []),
    ...(comparison ? compareLines(comparison) : []),
    ['look', typedCommand(['view', typedPath(path)])],
  ]
  return [headline(report), ...lines.map(([label, text]) => `${label.padEnd(8)} ${text}`)]
    .map((line) => wrapLabelled(line, columns))
    .join('\n')
}

/** What was evaluated, in one line. */
export function headline({ agent, model, checkpoint, policies, answeredAs }: Omit<EvaluationReport, 'comparison'>): string {
  const other = answeredAs.filter((name) => name !== shortName(model))
  const answers = other.length > 0 ? `, which answers as ${other.join(' and ')}` : ''
  if (policies)
    return `${agent} with ${Object.entries(policies)
      .map(([name, policy]) => `${name}: ${typedPath(policy.checkpoint ?? policy.model)}`)
      .join(', ')}`
  if (model === null) return `${agent} with a model of its own`
  return `${agent} with ${describeModelOf(model)}${checkpoint === null ? '' : `, weights of ${typedPath(checkpoint)}`}${answers}`
}

const addressOf = (model: string) => /^(https?:\/\/[^#]*)#(.*)$/s.exec(model)

/** The name of a model without its place. */
const shortName = (model: string | null) => (model === null ? '' : (addressOf(model)?.[2] ?? basename(model)))

function describeModelOf(model: string): string {
  const [, baseUrl, name] = addressOf(model) ?? []
  return baseUrl === undefined ? typedPath(model) : `${name} at ${new URL(baseUrl).host}`
}

const number = (value: number) => value.toFixed(3)
const rough = (value: number) => value.toFixed(2)
const interval = ([low, high]: readonly [number, number], text = number) => `[${text(low)}, ${text(high)}]`

function rewardLines({ reward, interval: range, bounds, scored, rollouts, unscored, tasks, failed }: EvaluationReport): Line[] {
  if (reward === null && scored.rollouts > 0)
    return [['ranks', `${scored.rollouts} of ${rollouts} rollouts; an order within each task is no score and has no mean`]]
  if (reward === null || range === null) return [['answers', `${rollouts - failed} of ${rollouts}; nothing is scored without --reward`]]
  const rest = bounds ? `, ${number(bounds[0])} to ${number(bounds[1])} with the rest` : ''
  const part = scored.rollouts < rollouts ? `; ${scored.rollouts} of ${rollouts} scored${rest}` : ''
  const abstained = unscored > 0 ? `, ${unscored} without a score by the reward` : ''
  const width = range[1] - range[0]
  return [
    [
      'reward',
      `${number(reward)} ${interval(range)} on ${counted(scored.tasks, 'task')}${scored.tasks < tasks ? ` of ${tasks}` : ''}${part}${abstained}`,
    ],
    ...(width > wide
      ? [
          [
            '',
            `${counted(scored.tasks, 'task')} give an interval ${rough(width)} wide: smaller differences are chance; more tasks narrow it`,
          ] as const,
        ]
      : []),
  ]
}

function passLines({ passAtK, majority, samplesPerTask }: EvaluationReport): Line[] {
  const passes = Object.entries(passAtK).filter(([k]) => k !== '1')
  const texts = [
    ...passes.map(([k, { value, interval: range }]) => `${k}: ${number(value)} ${interval(range, rough)}`),
    ...(majority ? [`majority@${samplesPerTask}: ${number(majority.value)}`] : []),
  ]
  return texts.length > 0 ? [['pass@k', texts.join('   ')]] : []
}

function kindLines({ byKind, mostFrequentAnswer, reward }: EvaluationReport): Line[] {
  if (reward === null) return []
  const kinds = Object.entries(byKind)
  const shown = kinds.map(
    ([kind, { value, interval: range, tasks }]) => `${kind} ${rough(value)} ${interval(range, rough)} (${counted(tasks, 'task')})`,
  )
  return [
    ...(kinds.length > 1 ? [['by kind', shown.join('  ')] as const] : []),
    ...(mostFrequentAnswer === null ? [] : [['floor', `${rough(mostFrequentAnswer)} by always saying the most frequent answer`] as const]),
  ]
}

function failureLines({ failed, rollouts, failures }: EvaluationReport): Line[] {
  if (failed === 0) return []
  const reasons = failures.map(
    ({ code, count, rollout, message }) => `${count === failed ? '' : `${count} `}${code} (first ${rollout}): ${message}`,
  )
  return [['failed', `${failed} of ${rollouts}: ${reasons.join('; ')}; once more: ${typedCommand(['eval', '--again', 'failed'])}`]]
}

function costText({ cost, rewardCost, usage, perRollout }: EvaluationReport): string {
  const { promptTokens, completionTokens, cachedTokens } = usage
  const cached = promptTokens > 0 && cachedTokens > 0 ? `, ${Math.round((100 * cachedTokens) / promptTokens)} % of them cached` : ''
  const money = cost === null ? 'no price: ' : cost > 0 ? `${dollars(cost)}: ` : ''
  const { turns, toolCalls, seconds } = perRollout
  const each = `${turns.toFixed(1)} turns, ${toolCalls.toFixed(1)} tools, ${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s a rollout`
  const judges = rewardCost > 0 ? `; ${dollars(rewardCost)} more for the reward` : ''
  return `${money}${inThousands(promptTokens)} tokens in${cached}, ${inThousands(completionTokens)} out; ${each}${judges}`
}

const inThousands = (count: number) =>
  count >= 1e6 ? `${(count / 1e6).toFixed(1)} M` : count >= 1e4 ? `${Math.round(count / 1e3)} k` : String(count)

/** The lines of a comparison. */
export function compareLines({ model, path, startedAt, difference, better, worse, worst, notes }: EvaluationComparison): Line[] {
  const date = new Date(startedAt).toLocaleDateString('en-GB', { day: 'numeric', month: 'short' })
  const { value, interval: range, tasks } = difference
  const example = worst ? ` (${worst.taskId}: ${rough(worst.from)} to ${rough(worst.to)})` : ''
  const sign = value > 0 ? '+' : ''
  return [
    [
      'against',
      `${shortName(model) || basename(path)}, ${date}: ${sign}${number(value)} ${interval(range)}; of ${counted(tasks, 'task')} ${better} better, ${worse} worse${example}`,
    ],
    ...notes.map((note) => ['', note] as const),
  ]
}
