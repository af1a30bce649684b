import { existsSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { TrainError } from '@aworld-train/core'
import { exportRun, openDashboard } from '@aworld-train/dashboard'
import { readRun } from '@aworld-train/store'
import { z } from 'zod'
import { defineCommand } from '../define-command.ts'

export const view = defineCommand({
  arguments: [
    { name: 'run', description: 'run directory, or the name of a run (default: a list of those below runs/)' },
    { name: 'other', description: 'a run to lay over it' },
  ],
  options: z.object({
    export: z.string().optional().describe('write the runs as one page that opens from disk, and end'),
    port: z.number().int().min(0).max(65535).default(0).describe('port on this machine; 0 takes a free one'),
    runs: z.string().default('runs').describe('folder of runs'),
  }),
  async run({ args, options, signal }) {
    const isName = (run: string) => basename(run) === run && !existsSync(run)
    const runs = args.flatMap((run) => (run === undefined ? [] : isName(run) ? join(options.runs, run) : run))
    for (const run of runs) readRun(run).close()
    if (options.export !== undefined) {
      if (runs.length === 0) throw new TrainError('CONFIG_INVALID', 'There is no run to export; name one before --export.')
      const { bytes, rollouts, whole, damaged } = await exportRun(runs, options.export)
      const carried =
        whole === rollouts ? `all ${rollouts} rollouts` : `${whole} of ${rollouts} rollouts token by token, and the numbers of all`
      const lost = damaged > 0 ? `; the tokens of ${damaged} are damaged` : ''
      process.stdout.write(`${options.export}  ${(bytes / 1e6).toFixed(1)} MB, ${carried}${lost}\n`)
      return undefined
    }
    const dashboard = await openDashboard({ runs, ...(runs.length === 0 && { below: resolve(options.runs) }), port: options.port })
    process.stdout.write(`${dashboard.url}\nCtrl-C ends it.\n`)
    if (!signal.aborted) await new Promise((settle) => signal.addEventListener('abort', settle, { once: true }))
    await dashboard.close()
    return undefined
  },
})
