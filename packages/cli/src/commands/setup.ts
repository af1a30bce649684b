import { relative, resolve } from 'node:path'
import { TrainError } from '@aworld-train/core'
import { makeTrainerEnvironment, setupFolder } from '@aworld-train/trainers/shared'
import { pythonTrainers } from 'aworld-train'
import { z } from 'zod'
import { defineCommand } from '../define-command.ts'
import { exitCodes } from '../exit-codes.ts'
import { typedCommand } from '../typed-command.ts'

const names = pythonTrainers.map(({ name }) => name)

export const setup = defineCommand({
  arguments: [{ name: 'trainer', description: names.join(' or '), required: true }],
  options: z.object({
    python: z.enum(['3.11', '3.12']).optional().describe('version of Python (default: whichever of them is found)'),
    directory: z.string().optional().describe('folder of the environment (default: .aworld-train/python/<trainer> of this folder)'),
    torch: z.string().default('auto').describe('cpu, or a version of CUDA such as 13.0; auto reads the driver of this machine'),
  }),
  async run({ args, options, signal }) {
    const trainer = pythonTrainers.find(({ name }) => name === args[0])
    if (!trainer)
      throw new TrainError('CONFIG_INVALID', `There is nothing to set up for "${args[0]}"; trainers in Python: ${names.join(', ')}.`)
    const directory = resolve(options.directory ?? setupFolder(trainer.name))
    const started = performance.now()
    const say = (line: string) => void process.stdout.write(`${line}\n`)
    say(`${trainer.name} in ${relative(process.cwd(), directory) || '.'}`)
    const takes = trainer.facts?.environment
    if (takes)
      say(
        `  about ${(takes.megabytes / 1000).toFixed(1)} GB and ${takes.seconds} s for a processor, with downloads cached; hard links into uv's cache`,
      )
    const { python, torch } = options
    const { isNew, report, ...found } = await makeTrainerEnvironment(trainer.python, {
      directory,
      python,
      torch,
      signal,
      onProgress: (line) => say(`  ${line}`),
    })
    const { version, packages } = report
    const versions = trainer.python.shown.flatMap((name) => (packages[name] ? [`${name} ${packages[name]}`] : []))
    say(isNew ? `\nready after ${((performance.now() - started) / 1000).toFixed(0)} s` : '\nready: it stood already')
    say(`  Python ${version}, ${versions.join(', ')}\n  ${found.python}`)
    const elsewhere =
      options.directory === undefined
        ? []
        : [`export AWORLD_TRAIN_PYTHON='${found.python.replaceAll("'", `'\\''`)}'   # by which trainings find it`]
    say(`\n${['next', ...elsewhere, typedCommand(['doctor', '--engine', trainer.name, '--smoke'])].join('\n  ')}`)
    return exitCodes.done
  },
})
