import { resolve } from 'node:path'
import type { RunReport } from '@aworld-train/protocol'
import { AgentTrainer } from 'aworld-train'
import { z } from 'zod'
import { defineCommand } from '../define-command.ts'
import { exitCodes } from '../exit-codes.ts'
import { loadProject } from '../load-project.ts'
import { renderReport, renderStop } from '../terminal/report-text.ts'
import { createRunDisplay } from '../terminal/run-display.ts'

export const train = defineCommand({
  arguments: [{ name: 'project', description: 'folder with an aworld-train.config.ts, or that file (default: this folder)' }],
  options: z.object({
    agent: z.string().optional().describe('agent instead of that of the project: ./file.ts#name, or an agent.yaml'),
    seed: z.int().min(0).optional().describe('seed of sampling and of the order of tasks'),
    steps: z.int().min(1).optional().describe('training steps, instead of those of the configuration'),
    new: z.boolean().optional().describe('start a new run even where an unfinished one can be resumed'),
    resume: z.string().optional().describe('resume this run, by name or path'),
    fromScratch: z.boolean().optional().describe('make the starting model first, with the warm-up of the project'),
    dryRun: z.boolean().optional().describe('write what verl would start with, have the installed verl check it, and start nothing'),
    runPath: z.string().optional().describe('parent folder of runs (default: runs)'),
    json: z.boolean().optional().describe('print one JSON event a line instead of text'),
  }),
  async run({ args, options, signal }) {
    const { definition } = await loadProject(args[0])
    const display = createRunDisplay({ stream: process.stdout, json: options.json === true })
    try {
      const trainer = await AgentTrainer.create({
        ...definition,
        ...(options.agent === undefined ? {} : { agent: resolve(options.agent) }),
        ...(options.runPath === undefined ? {} : { runPath: options.runPath }),
        seed: options.seed ?? definition.seed,
        steps: options.steps ?? definition.steps,
        fresh: options.new ?? definition.fresh,
        resume: options.resume ?? definition.resume,
        fromScratch: options.fromScratch ?? definition.fromScratch,
        onEvent: (event) => display.show(event),
      })
      if (options.dryRun) {
        const { notes, path, files, verl } = await trainer.dryRun(signal)
        display.close()
        const text = [...notes.map((note) => `note: ${note}`), `verl ${verl} takes this configuration; nothing was started.`, path]
        if (options.json) process.stdout.write(`${JSON.stringify({ path, files, verl, notes })}\n`)
        else process.stdout.write(`${[...text, ...files.map((file) => `  ${file}`)].join('\n')}\n`)
        return exitCodes.done
      }
      const report = await trainer.train<RunReport | undefined>(signal)
      display.close()
      if (report && !options.json) process.stdout.write(`${renderReport(report, { target: args[0], columns: process.stdout.columns })}\n`)
      return report?.status === 'stopped' ? exitCodes.stopped : exitCodes.done
    } catch (error) {
      if (!signal.aborted) throw error
      display.close()
      if (!options.json) process.stdout.write(`${renderStop({ target: args[0] })}\n`)
      return exitCodes.stopped
    } finally {
      display.close()
    }
  },
})
