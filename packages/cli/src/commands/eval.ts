import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { EvaluationReport, type EvaluationWithResults, type RunEvent, RunManifest, TrainError } from '@aworld-train/core'
import { compareEvaluations, findEvaluation, readEvaluation, requireFewFailures } from '@aworld-train/training'
import { rescoreRun, runEvaluation } from 'aworld-train'
import { z } from 'zod'
import { defineCommand } from '../define-command.ts'
import { compareLines, headline, renderEvaluation } from '../terminal/evaluation-text.ts'
import { createRunDisplay } from '../terminal/run-display.ts'
import { wrapLabelled } from '../terminal/text-width.ts'
import { typedCommand } from '../typed-command.ts'
import { type CommandEvaluation, EvaluationCommand, evaluationFlags, readCommand } from './evaluation-command.ts'

export const evaluate = defineCommand({
  arguments: [
    {
      name: 'agent',
      description: 'agent (./agent.ts#name, or an agent.yaml), or folder of a project (default: this one); or the word compare',
    },
    { name: 'newer', description: 'of compare: an evaluation by its path or name, or last' },
    { name: 'older', description: 'of compare: the evaluation to compare it with' },
  ],
  options: evaluationFlags.extend({
    budget: z.number().min(0).optional().describe('US dollars that the evaluation may cost; rollouts beyond it do not start'),
    maxFailed: z.number().min(0).max(1).default(0.02).describe('greatest share of rollouts that may fail; more end with exit code 1'),
    compare: z.string().optional().describe('evaluation to compare with, task by task: its path or name, or last'),
    again: z.enum(['failed']).optional().describe('run what failed once more, in the newest evaluation or the named one'),
    rescore: z.string().optional().describe('score the episodes of the newest evaluation, or of the named one, with this reward'),
    new: z.boolean().optional().describe('start a new evaluation, also where an unfinished one of the same command exists'),
    runPath: z.string().optional().describe('parent folder of runs (default: runs)'),
    json: z.boolean().optional().describe('print one JSON event a line instead of text; what your code prints goes to standard error'),
  }),
  async run({ args, options, signal, output }) {
    const [target = null, newer, older] = args
    const { budget, maxFailed, compare, again, rescore, new: fresh, json, runPath: runFlag, ...flags } = options
    if (target === 'compare') return await comparePair(newer, older, runFlag ?? 'runs', output)
    const columns = output.columns || 80
    const display = createRunDisplay({ stream: output, json: json === true })
    const print = (report: EvaluationReport) => {
      display.close()
      if (!json) output.write(`${renderEvaluation(report, columns)}\n`)
    }
    // The report says in text what the event of the evaluation's end says.
    const onEvent = (event: RunEvent) => {
      if (json || event.type !== 'evaluation-end') display.show(event)
    }
    try {
      if (again !== undefined || rescore !== undefined) {
        const runPath = runFlag ?? 'runs'
        const path = findEvaluation(target ?? 'last', { runPath })
        const command = commandOf(path)
        const read = await readCommand(command, command.flags.model?.[0])
        const report =
          rescore === undefined
            ? await runEvaluation({ ...read, budget, runPath, resume: path, againFailed: true, onEvent }, signal)
            : await rescoreRun({ ...read, rewardFunc: resolve(rescore), runPath, from: path, onEvent }, signal)
        print(report)
        requireFewFailures(report, maxFailed)
        return 0
      }
      const command = { directory: process.cwd(), target, flags }
      const models = flags.model ?? [undefined]
      const reports: EvaluationWithResults[] = []
      for (const model of models) {
        const read: CommandEvaluation = await readCommand(
          { ...command, flags: { ...flags, ...(model !== undefined && { model: [model] }) } },
          model,
        )
        const runPath = runFlag ?? read.runPath ?? 'runs'
        const against = compare ?? reports[0]?.path
        reports.push(await runEvaluation({ ...read, budget, runPath, fresh, compare: against, onEvent }, signal))
        print(reports.at(-1)!)
      }
      for (const report of reports) requireFewFailures(report, maxFailed)
      return 0
    } finally {
      display.close()
    }
  },
})

/** The command of an evaluation. Throws CONFIG_INVALID for a run that no command started. */
function commandOf(path: string): EvaluationCommand {
  const { provenance } = RunManifest.parse(JSON.parse(readFileSync(join(path, 'manifest.json'), 'utf8')))
  const { data } = EvaluationCommand.safeParse(provenance['command'])
  if (data) return data
  throw new TrainError('CONFIG_INVALID', `${path} was started by a program, which alone has its agent; run that program again.`)
}

async function comparePair(
  newer: string | undefined,
  older: string | undefined,
  runPath: string,
  output: NodeJS.WriteStream,
): Promise<number> {
  if (newer === undefined || older === undefined)
    throw new TrainError('CONFIG_INVALID', `Two evaluations are compared; write ${typedCommand(['eval', 'compare', 'NEWER', 'OLDER'])}.`)
  const [ours, theirs] = await Promise.all([newer, older].map((named) => readEvaluation(findEvaluation(named, { runPath }))))
  const report = EvaluationReport.parse(ours!.report)
  const lines = compareLines(compareEvaluations(ours!, theirs!)).map(([label, text]) => `${label.padEnd(8)} ${text}`)
  output.write(`${[headline(report), ...lines].map((line) => wrapLabelled(line, output.columns || 80)).join('\n')}\n`)
  return 0
}
