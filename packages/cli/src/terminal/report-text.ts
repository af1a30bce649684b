import { isAbsolute } from 'node:path'
import { styleText } from 'node:util'
import { describeFailure, type EvaluationResult, metricsByRole, type RunReport, type TokenLedger } from '@aworld-train/core'
import { pythonTrainers } from 'aworld-train'
import { typedCommand, typedPath } from '../typed-command.ts'
import { counted } from './counted.ts'
import { curveMargin, renderCurve } from './curve.ts'
import { textWidth, wrapLabelled } from './text-width.ts'
import { renderTokenReport } from './token-report-text.ts'

export interface ReportTextOptions {
  /** Words of `eval` that name the project and its agent as the user typed them. */
  readonly project?: readonly string[] | undefined
  /** Columns of the terminal, if there is one. */
  readonly columns?: number | undefined
}

/** The text at the end of a run: the curve, before and after, the ledger, the path, and the commands to type next. */
export function renderReport(report: RunReport, { project = [], columns }: ReportTextOptions = {}): string {
  const path = typedPath(report.path)
  const labelled = [
    ...(report.ledger ? [ledgerLine(report.ledger)] : []),
    ...agentLines(report),
    ...policyLines(report),
    ...roleLines(report),
    ...(report.tokenReport ? renderTokenReport(report.tokenReport) : []),
    ...timeLines(report),
    ...gapLine(report),
    ...report.failures.map((failure) => `failed   ${describeFailure(failure)}`),
    ...warningLines(report),
    '',
    ...modelLine(report),
    `run      ${path}   (report.json, checkpoints, every token in segments/)`,
  ]
  const next: [what: string, ...args: string[]][] = [
    ['the run in the browser, down to the token', 'view', path],
    ['read an episode', 'replay', path],
    // The engine in the box samples only from its own checkpoints.
    pythonTrainers.some(({ name }) => report.engine.split(' ')[0] === name)
      ? ['the trained model as a Hugging Face folder', 'export', path, '--what', 'model', '--to', 'model']
      : [`pass@k of the trained ${report.policies ? 'policies' : 'policy'}`, 'eval', ...project, '--model', path],
    ...exportOfPolicy(report, path),
    ['training samples, token by token', 'export', path, '--to', 'samples.jsonl'],
  ]
  return [
    ...rewardCurve(report, columns),
    '',
    ...evaluationTable(report, columns),
    '',
    ...labelled.map((line) => (columns === undefined ? line : wrapLabelled(line, columns))),
    'next',
    ...next.flatMap(([what, ...args]) => [styleText('gray', `  # ${what}`), `  ${typedCommand(args)}`]),
  ].join('\n')
}

/** The command that writes one of several policies as a model. Weights at a Tinker service stay there. */
function exportOfPolicy({ policies = {}, engine }: RunReport, path: string): [what: string, ...args: string[]][] {
  const [name] = Object.entries(policies).find(([, { checkpoint }]) => checkpoint !== null) ?? []
  if (name === undefined || engine === 'tinker') return []
  const args = ['export', path, '--what', 'model', '--policy', name, '--to', `${name}-trained`]
  return [['one of the trained policies as a Hugging Face folder', ...args]]
}

function rewardCurve({ curve }: RunReport, columns = 80): string[] {
  if (curve.length === 0) return []
  const width = Math.min(60, columns - curveMargin)
  const rewards = curve.map(({ reward }) => reward)
  return ['', styleText('bold', `mean reward of each step, 1 to ${curve.at(-1)?.step}`), renderCurve(rewards, { width })]
}

/** Evaluations side by side if there is room, or else one below the other. */
function evaluationTable(report: RunReport, columns = 80): string[] {
  const { before, after, greedyBefore, greedyAfter } = report
  const sampled = after ?? before
  if (!sampled) return []
  const greedy = greedyAfter ?? greedyBefore
  const rows = [
    [`temperature ${sampled.sampling.temperature}`, cell(before), cell(after)],
    ...[...new Set([...Object.keys(before?.byKind ?? {}), ...Object.keys(after?.byKind ?? {})])].map((kind) => [
      `  ${kind}`,
      before?.byKind[kind]?.reward.toFixed(3) ?? 'missing',
      after?.byKind[kind]?.reward.toFixed(3) ?? 'missing',
    ]),
    ...(greedy ? [['greedy', cell(greedyBefore), cell(greedyAfter)]] : []),
  ] as [name: string, before: string, after: string][]
  const [names, values] = [
    Math.max(16, ...rows.map(([name]) => textWidth(name) + 1)),
    Math.max(...rows.map(([, value]) => value.length)) + 2,
  ]
  const isWide = names + values + Math.max(...rows.map(([, , value]) => value.length)) <= columns
  const table = isWide
    ? [['held-out reward', 'before', 'after'] as const, ...rows].map(
        ([name, first, second]) => `${name.padEnd(names)}${first.padEnd(values)}${second}`,
      )
    : ['held-out reward', ...rows.flatMap(([name, first, second]) => [name, `    before ${first}`, `    after  ${second}`])]
  const of = `${counted(sampled.tasks, 'task')}, ${counted(sampled.rollouts, 'rollout')}${greedy ? ` and ${greedy.rollouts} greedy ones` : ''}`
  const parts = [before, after, greedyBefore, greedyAfter].flatMap((result) => (result?.counted ? [partLine(result, result.counted)] : []))
  return [styleText('bold', table[0] as string), ...table.slice(1), `on ${of} each; 95 % intervals over tasks`, ...parts]
}

function cell(result: EvaluationResult | null): string {
  return result ? `${result.reward.toFixed(3)} [${result.interval[0].toFixed(3)}, ${result.interval[1].toFixed(3)}]` : 'missing'
}

/** The part of the rollouts in the mean of an evaluation, if the infrastructure failed the others. */
const partLine = ({ name, tasks, rollouts }: EvaluationResult, part: NonNullable<EvaluationResult['counted']>) =>
  `${name}: on ${part.tasks} of ${counted(tasks, 'task')}, ${part.rollouts} of ${counted(rollouts, 'rollout')}; the others have no outcome`

function ledgerLine({ sampled, trained, untrained, unexplained }: TokenLedger): string {
  const reasons = Object.entries(untrained).map(([reason, count]) => `${reason} ${count}`)
  return `tokens   ${sampled} sampled = ${trained} trained + ${reasons.join(' + ') || '0'} + ${unexplained} unexplained`
}

/** Tokens of each agent if there are several, because one may be trained and another not. */
function agentLines({ agents }: RunReport): string[] {
  const all = Object.entries(agents)
  if (all.length < 2) return []
  return all.map(([name, { sampled, trained, untrained }]) => {
    const reasons = Object.entries(untrained).map(([reason, tokens]) => ` + ${reason} ${tokens}`)
    return `         ${name}: ${sampled} sampled, ${trained} trained${reasons.join('')}`
  })
}

/** Tokens of each policy if there are several. The reasons are in `report.json`. */
function policyLines({ policies = {} }: RunReport): string[] {
  return Object.entries(policies).map(([name, { trainable, ledger }]) => {
    const { sampled, trained, unexplained } = ledger
    const others = sampled - trained - unexplained
    return `policy   ${name}${trainable ? '' : ' (frozen)'}: ${sampled} = ${trained} trained + ${others} untrained + ${unexplained} unexplained`
  })
}

/** Reward, malformed turns and length of the turns of each role in the first step and in the last, if there are several roles. */
function roleLines({ curve }: RunReport): string[] {
  const steps = [curve[0], curve.at(-1)].map((step) => metricsByRole(step?.metrics ?? {}))
  return Array.from(steps[1]!.keys(), (name) => {
    const parts = steps.map((roles): readonly (string | null)[] => {
      const { reward, turns = 0, malformedTurns = 0, sampledTokens = 0 } = roles.get(name) ?? {}
      return [reward?.toFixed(2) ?? null, turns ? short((100 * malformedTurns) / turns) : null, turns ? short(sampledTokens / turns) : null]
    })
    const change = (part: number) => parts.map((values) => values[part] ?? '–').join(' → ')
    return `role     ${name}: reward ${change(0)}, malformed ${change(1)} %, ${change(2)} tokens/turn`
  })
}

/** Two digits, or all of a whole number. */
const short = (value: number) => String(value < 10 ? Number(value.toPrecision(2)) : Math.round(value))

function gapLine({ maxLogprobDifference: gap }: RunReport): string[] {
  return gap === null ? [] : [`logprobs differ between sampler and trainer by ${gap.toPrecision(2)} at most`]
}

/** The weights of the report. */
function modelLine({ policies, ...report }: RunReport): string[] {
  const weights = policies ? Object.entries(policies) : [[null, report] as const]
  return weights.flatMap(([name, { model, checkpoint }]) =>
    model === null
      ? []
      : [
          `model    ${name === null ? '' : `${name}: `}${isAbsolute(model) ? typedPath(model) : model}${checkpoint === null ? '' : `, trained: ${checkpoint}`}`,
        ],
  )
}

/** Warnings of the run, one line for each kind. Notes on the configuration were shown before the first step. */
function warningLines({ warnings }: RunReport): string[] {
  return warnings.flatMap(({ code, count, messages }) =>
    code === 'CONFIG_NOTE' ? [] : [`warning  ${messages[0]}${count > 1 ? ` (the first of ${count} of its kind)` : ''}`],
  )
}

/** Counts of tool calls. For calls that an agent of another framework runs by itself, only the model's request is seen. */
function toolCallText({ asked: requested, environment, functions }: RunReport['counts']['toolCalls']): string {
  const run = environment + functions
  const ofFunctions = functions > 0 ? ` (${functions} of functions)` : ''
  return requested === run
    ? `${counted(run, 'tool call')}${ofFunctions}`
    : `${counted(requested, 'tool call')} asked for, ${run} run here${ofFunctions}`
}

/** Time over all processes of the run. */
function timeLines({ times, counts }: RunReport): string[] {
  const seconds = (milliseconds: number) => (milliseconds / 1000).toFixed(1)
  const { rollouts, attempts = rollouts, notStarted = 0 } = counts
  const ofRollouts = `${counted(rollouts, 'rollout')}${attempts > rollouts ? ` in ${attempts} attempts` : ''}${notStarted > 0 ? ` (${notStarted} more not started, of solved groups)` : ''}`
  const phases = Object.entries(times.phasesMs).map(([name, milliseconds]) => `${name} ${seconds(milliseconds)}`)
  return [
    `time     ${seconds(times.wallMs)} s wall, ${seconds(times.cpuMs)} s CPU without the tool servers${phases.length > 0 ? ` (${phases.join(', ')})` : ''}`,
    `counts   ${ofRollouts}, ${counted(counts.modelCalls.gateway, 'model call')}, ${toolCallText(counts.toolCalls)}`,
  ]
}
