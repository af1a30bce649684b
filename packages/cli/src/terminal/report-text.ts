import { relative } from 'node:path'
import { styleText } from 'node:util'
import type { EvaluationResult, RunReport } from '@aworld-train/protocol'
import { renderTokenReport } from './token-report-text.ts'

/** What a person types: the script of this repository where the sources run, else the installed command. */
export const typed = import.meta.url.endsWith('.ts') ? 'npm run aworld-train --' : 'npx aworld-train'

/** What a person reads when a run was stopped; without a path it had not begun to train. */
export function renderStop({ target, path }: { readonly target?: string | undefined; readonly path?: string }): string {
  return `stopped; ${styleText('bold', `${typed} train${target ? ` ${target}` : ''}`)} ${path ? `resumes ${path}` : 'goes on from here'}`
}

/** What a person reads when a run ends: before and after, the ledger, the path, and what to type next. */
export function renderReport(report: RunReport, { target }: { target?: string | undefined } = {}): string {
  const path = relative(process.cwd(), report.path) || '.'
  const project = target ? ` ${target}` : ''
  if (report.status === 'stopped') return renderStop({ target, path })
  const lines = ['', ...evaluationTable(report), '']
  if (report.ledger) lines.push(ledgerLine(report))
  if (report.tokenReport) lines.push(...renderTokenReport(report.tokenReport))
  lines.push(timeLine(report), ...warningLines(report), '', `run      ${path}   (report.json, checkpoints, every token in segments/)`)
  lines.push(
    'next',
    `  ${typed} replay ${path}            read an episode`,
    // The engine in the box samples from its own checkpoints only.
    report.engine.startsWith('verl')
      ? `  ${typed} export ${path} --what model --to model   the trained model as a Hugging Face folder`
      : `  ${typed} eval${project} --checkpoint ${path}   pass@k of the trained policy`,
    `  ${typed} export ${path} --to samples.jsonl`,
  )
  return lines.join('\n')
}

function evaluationTable({ before, after, greedyBefore, greedyAfter }: RunReport): string[] {
  if (!before && !after) return []
  const rows = [
    ['held-out reward', 'before', 'after'],
    [`temperature ${(after ?? before)?.sampling.temperature ?? 1}, ${(after ?? before)?.rollouts ?? 0} tasks`, cell(before), cell(after)],
    ...(greedyBefore || greedyAfter ? [['greedy', cell(greedyBefore), cell(greedyAfter)]] : []),
    ...[...new Set([...Object.keys(before?.byKind ?? {}), ...Object.keys(after?.byKind ?? {})])].map((kind) => [
      `  ${kind}`,
      before?.byKind[kind]?.reward.toFixed(3) ?? 'missing',
      after?.byKind[kind]?.reward.toFixed(3) ?? 'missing',
    ]),
  ]
  return rows.map(([name, first, second], index) => {
    const line = `${(name as string).padEnd(32)}${(first as string).padEnd(24)}${second}`
    return index < 2 ? styleText('bold', line) : line
  })
}

function cell(result: EvaluationResult | null): string {
  return result ? `${result.reward.toFixed(3)} [${result.interval[0].toFixed(3)}, ${result.interval[1].toFixed(3)}]` : 'missing'
}

function ledgerLine({ ledger }: RunReport): string {
  if (!ledger) return ''
  const reasons = Object.entries(ledger.untrained).map(([reason, count]) => `${reason} ${count}`)
  return `tokens   ${ledger.sampled} sampled = ${ledger.trained} trained + ${reasons.join(' + ') || '0'} + ${ledger.unexplained} unexplained`
}

/** What went amiss, a line a kind; notes on the configuration were said before the first step. */
function warningLines({ warnings }: RunReport): string[] {
  return warnings.flatMap(({ code, count, messages }) =>
    code === 'CONFIG_NOTE' ? [] : [`warning  ${messages[0]}${count > 1 ? ` (the first of ${count} of its kind)` : ''}`],
  )
}

function timeLine({ times, counts }: RunReport): string {
  const phases = Object.entries(times.phasesMs).map(([name, milliseconds]) => `${name} ${(milliseconds / 1000).toFixed(1)}`)
  return `time     ${(times.wallMs / 1000).toFixed(1)} s wall, ${(times.cpuMs / 1000).toFixed(1)} s CPU without the tool servers (${phases.join(', ')}); ${counts.rollouts} rollouts, ${counts.modelCalls.gateway} model calls, ${counts.toolCalls.environment} tool calls`
}
