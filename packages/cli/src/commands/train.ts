import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { styleText } from 'node:util'
import { RunReport, TrainError } from '@aworld-train/core'
import { AgentTrainer } from 'aworld-train'
import { z } from 'zod'
import { DashboardOption, readDashboardOption } from '../dashboard-option.ts'
import { defineCommand } from '../define-command.ts'
import { exitCodes } from '../exit-codes.ts'
import { loadProject } from '../load-project.ts'
import { renderReport } from '../terminal/report-text.ts'
import { createRunDisplay } from '../terminal/run-display.ts'
import { resumeArguments, typedCommand, typedPath } from '../typed-command.ts'

export const train = defineCommand({
  arguments: [{ name: 'project', description: 'folder with an aworld-train.config.ts, or that file (default: this folder)' }],
  options: z.object({
    agent: z.string().optional().describe('agent instead of that of the project: ./file.ts#name, or an agent.yaml'),
    engine: z.string().optional().describe('trainer instead of that of the project, such as areal, local, swift, tinker, trl or verl'),
    seed: z.int().min(0).optional().describe('seed of sampling and of the order of tasks'),
    steps: z.int().min(1).optional().describe('training steps, instead of those of the configuration'),
    new: z.boolean().optional().describe('start a new run even where an unfinished one can be resumed'),
    resume: z.string().optional().describe('resume this run, by name or path'),
    fromScratch: z.boolean().optional().describe('make the starting model first, with the warm-up of the project'),
    dryRun: z
      .boolean()
      .optional()
      .describe('write what a trainer in Python would start with, have it checked by the one that is installed, and start nothing'),
    runPath: z.string().optional().describe('parent folder of runs (default: runs)'),
    dashboard: DashboardOption.describe('the dashboard of the run, on this machine while it goes on: on (the default), off, or its port'),
    json: z.boolean().optional().describe('print one JSON event a line instead of text; what your code prints goes to standard error'),
  }),
  async run({ args, options, signal, output }) {
    const { definition } = await loadProject(args[0])
    const display = createRunDisplay({ stream: output, json: options.json === true })
    const startsAnew = options.new ?? (options.resume === undefined && definition.fresh === true)
    const hint = createResumeHint(startsAnew)
    let started: string | null = null
    const dashboard = readDashboardOption(options.dashboard) ?? definition.dashboard ?? options.json !== true
    const onUrl = (url: string) => display.print(`watch    ${url}`)
    const sayAtExit = () => void process.stderr.write(`${hint(started)}\n`)
    // A second signal ends the process immediately, without a report.
    process.once('exit', sayAtExit)
    try {
      const trainer = await AgentTrainer.create({
        ...definition,
        ...(options.agent === undefined ? {} : { agent: resolve(options.agent) }),
        ...(options.engine === undefined ? {} : { trainEngineName: options.engine }),
        ...(options.runPath === undefined ? {} : { runPath: options.runPath }),
        seed: options.seed ?? definition.seed,
        steps: options.steps ?? definition.steps,
        fresh: startsAnew,
        resume: options.resume ?? definition.resume,
        fromScratch: options.fromScratch ?? definition.fromScratch,
        dashboard: dashboard && { ...(!options.json && { onUrl }), ...(dashboard !== true && dashboard) },
        onEvent(event) {
          if (event.type === 'run-start') started = event.path
          display.show(event)
        },
      })
      if (options.dryRun) {
        const { notes, path, files, trainer: framework, version, lacks } = await trainer.dryRun(signal)
        display.close()
        const text = [
          ...notes.map((note) => `note: ${note}`),
          `${framework} ${version} takes this configuration; nothing was started.`,
          ...lacks.map((each) => `This machine cannot train it: ${each}`),
          path,
        ]
        if (options.json) output.write(`${JSON.stringify({ path, files, trainer: framework, version, lacks, notes })}\n`)
        else output.write(`${[...text, ...files.map((file) => `  ${file}`)].join('\n')}\n`)
        return lacks.length > 0 ? exitCodes.failed : exitCodes.done
      }
      // The report of a custom trainer may be any value.
      const { data: report } = RunReport.safeParse(await trainer.train<unknown>(signal))
      display.close()
      if (report?.status === 'stopped') {
        if (!options.json) output.write(`stopped; ${hint(report.path)}\n`)
        return exitCodes.stopped
      }
      const project = [...(args[0] === undefined ? [] : [args[0]]), ...(options.agent === undefined ? [] : ['--agent', options.agent])]
      if (report && !options.json) output.write(`${renderReport(report, { project, columns: output.columns })}\n`)
      return exitCodes.done
    } catch (error) {
      display.close()
      const run = error instanceof TrainError ? error.details?.['run'] : undefined
      const path = typeof run === 'string' && existsSync(run) ? run : null
      if (signal.aborted) {
        if (!options.json) output.write(`stopped; ${hint(path)}\n`)
        return exitCodes.stopped
      }
      if (path === null || !(error instanceof TrainError)) throw error
      const { code, message, cause, details } = error
      throw new TrainError(code, `${message}\nThe run stays; ${hint(path)}`, { cause, details })
    } finally {
      process.off('exit', sayAtExit)
      display.close()
    }
  },
})

/** Prints the command that resumes a run, or that starts again if no run has begun. */
function createResumeHint(startsAnew: boolean) {
  const typed = process.argv.slice(2)
  return (run: string | null): string => {
    const command = styleText('bold', typedCommand(resumeArguments(typed, run, startsAnew)))
    return `${run === null ? 'to start again' : `to resume ${typedPath(run)}`}:\n  ${command}`
  }
}
