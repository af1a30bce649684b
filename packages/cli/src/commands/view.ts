import { basename, resolve } from 'node:path'
import { exportRun, openDashboard } from '@aworld-train/dashboard'
import { TrainError } from '@aworld-train/protocol'
import { z } from 'zod'
import { defineCommand } from '../define-command.ts'

export const view = defineCommand({
  arguments: [
    { name: 'run', description: 'run directory (default: a list of those below runs/)' },
    { name: 'other', description: 'a run to lay over it' },
  ],
  options: z.object({
    export: z.string().optional().describe('write the runs as one page that opens from disk, and end'),
    port: z.number().int().min(0).max(65535).default(0).describe('port on this machine; 0 takes a free one'),
    runs: z.string().default('runs').describe('folder of runs, where no run is named'),
  }),
  async run({ args, options, signal }) {
    const runs = args.filter((run) => run !== undefined)
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
    const page =
      runs.length === 0
        ? ''
        : runs.length === 1
          ? `#/${basename(resolve(runs[0]!))}`
          : `#/?with=${runs.map((run) => basename(resolve(run))).join(',')}`
    process.stdout.write(`${dashboard.url}${page}\nCtrl-C ends it.\n`)
    if (!signal.aborted) await new Promise((settle) => signal.addEventListener('abort', settle, { once: true }))
    await dashboard.close()
    return undefined
  },
})
