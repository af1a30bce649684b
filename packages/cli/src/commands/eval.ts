import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { type EvaluationReport, type EvaluationWithResults, type RunEvent, RunManifest, TrainError } from '@aworld-train/core'
import { compareEvaluations, findEvaluation, readEvaluation, requireFewFailures } from '@aworld-train/training'
import { rescoreRun, runEvaluation } from 'aworld-train'
import { z } from 'zod'
import { defineCommand } from '../define-command.ts'
import { compareLines, headline, renderEvaluation } from '../terminal/evaluation-text.ts'
import { createRunDisplay } from '../terminal/run-display.ts'
import { wrapLabelled } from '../terminal/text-width.ts'
import { typedCommand } from '../typed-command.ts'
import { EvaluationCommand, evaluationFlags, projectOf, readCommand } from './evaluation-command.ts'

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
    const { maxFailed, compare, again, rescore, new: fresh, json, runPath: runFlag, ...flags } = options
    if (target === 'compare') return await comparePair(newer, older, { runPath: await runPathOf(runFlag), json, output })
    if (newer !== undefined)
      throw new TrainError(
        'CONFIG_INVALID',
        `"${newer}" stands behind the agent; write eval ./agent.ts with flags, or eval compare NEWER OLDER.`,
      )
    const display = createRunDisplay({ stream: output, json: json === true })
    const print = (report: EvaluationReport) => {
      display.close()
      if (!json) output.write(`${renderEvaluation(report, output.columns || 80)}\n`)
    }
    // The report says in text what the event of the evaluation's end says.
    const onEvent = (event: RunEvent) => {
      if (json || event.type !== 'evaluation-end') display.show(event)
    }
    try {
      if (again !== undefined || rescore !== undefined) {
        refuseFlags({ again, rescore }, { ...flags, new: fresh })
        const runPath = await runPathOf(runFlag)
        const path = findEvaluation(target ?? 'last', { runPath })
        const read = await readCommand(commandOf(path))
        const earlier = readEvaluation(path).report.comparison?.path
        const report =
          rescore === undefined
            ? await runEvaluation(
                {
                  ...read,
                  budget: flags.budget ?? read.budget,
                  compare: compare ?? earlier,
                  runPath,
                  resume: path,
                  againFailed: true,
                  onEvent,
                },
                signal,
              )
            : await rescoreRun({ ...read, rewardFunc: resolve(rescore), runPath, from: path, onEvent }, signal)
        print(report)
        requireFewFailures(report, maxFailed)
        return 0
      }
      const models = flags.model ?? [undefined]
      if (models.length > 1 && flags.cassette !== undefined)
        throw new TrainError(
          'CONFIG_INVALID',
          'A cassette has the answers of one model; give each --model a command and a --cassette of its own.',
        )
      const reports: EvaluationWithResults[] = []
      for (const model of models) {
        const command = { directory: process.cwd(), target, flags: { ...flags, ...(model !== undefined && { model: [model] }) } }
        const read = await readCommand(command)
        const runPath = runFlag ?? read.runPath ?? 'runs'
        reports.push(await runEvaluation({ ...read, runPath, fresh, compare: compare ?? reports[0]?.path, onEvent }, signal))
        print(reports.at(-1)!)
      }
      for (const report of reports) requireFewFailures(report, maxFailed)
      return 0
    } finally {
      display.close()
    }
  },
})

/** The parent folder of runs: that of the flag, of the project here, or `runs`. */
const runPathOf = async (flag: string | undefined) => flag ?? (await projectOf(process.cwd(), null))?.runPath ?? 'runs'

/** Throws CONFIG_INVALID for flags beside `--again` and `--rescore`, which repeat the command of an evaluation. */
function refuseFlags(
  { again, rescore }: { readonly again?: string | undefined; readonly rescore?: string | undefined },
  flags: Readonly<Record<string, unknown>>,
): void {
  if (again !== undefined && rescore !== undefined)
    throw new TrainError('CONFIG_INVALID', '--again and --rescore exclude each other; give one of them.')
  const takesBudget = again !== undefined
  const others = Object.keys(flags).filter((name) => flags[name] !== undefined && !(takesBudget && name === 'budget'))
  if (others.length === 0) return
  const names = others.map((name) => `--${name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`).join(', ')
  throw new TrainError(
    'CONFIG_INVALID',
    `${names} has no effect beside --${takesBudget ? 'again' : 'rescore'}, which repeats the command of the evaluation; leave it out.`,
  )
}

/** The command of an evaluation. Throws CONFIG_INVALID for a run that no command started. */
function commandOf(path: string): EvaluationCommand {
  const { provenance } = RunManifest.parse(JSON.parse(readFileSync(join(path, 'manifest.json'), 'utf8')))
  const { data } = EvaluationCommand.safeParse(provenance['command'])
  if (data) return data
  throw new TrainError('CONFIG_INVALID', `${path} was started by a program, which alone has its agent; run that program again.`)
}

interface PairPlaces {
  readonly runPath: string
  readonly json: boolean | undefined
  readonly output: NodeJS.WriteStream
}

async function comparePair(newer: string | undefined, older: string | undefined, { runPath, json, output }: PairPlaces): Promise<number> {
  if (newer === undefined || older === undefined)
    throw new TrainError('CONFIG_INVALID', `Two evaluations are compared; write ${typedCommand(['eval', 'compare', 'NEWER', 'OLDER'])}.`)
  const [ours, theirs] = [newer, older].map((named) => readEvaluation(findEvaluation(named, { runPath })))
  const comparison = compareEvaluations(ours!, theirs!)
  const lines = compareLines(comparison).map(([label, text]) => `${label.padEnd(8)} ${text}`)
  const text = [headline(ours!.report), ...lines].map((line) => wrapLabelled(line, output.columns || 80)).join('\n')
  output.write(`${json ? JSON.stringify(comparison) : text}\n`)
  return 0
}
