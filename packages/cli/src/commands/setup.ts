import { join, relative, resolve } from 'node:path'
import { TrainError } from '@aworld-train/protocol'
import { setupVerl } from '@aworld-train/trainer-verl'
import { z } from 'zod'
import { defineCommand } from '../define-command.ts'
import { exitCodes } from '../exit-codes.ts'
import { typedCommand } from '../typed-command.ts'

export const setup = defineCommand({
  arguments: [{ name: 'trainer', description: 'verl', required: true }],
  options: z.object({
    python: z.enum(['3.11', '3.12']).optional().describe('version of Python (default: whichever of them is found)'),
    directory: z.string().optional().describe('folder of the environment (default: .aworld-train/python/verl of this folder)'),
    torch: z.string().default('auto').describe('cpu, or a version of CUDA such as 13.0; auto reads the driver of this machine'),
  }),
  async run({ args, options, signal }) {
    if (args[0] !== 'verl')
      throw new TrainError('CONFIG_INVALID', `There is nothing to set up for "${args[0]}"; the trainer in Python is: verl.`)
    const directory = resolve(options.directory ?? join('.aworld-train', 'python', 'verl'))
    const started = performance.now()
    const say = (line: string) => void process.stdout.write(`${line}\n`)
    say(`verl in ${relative(process.cwd(), directory) || '.'}`)
    const { python, torch } = options
    const { isNew, report, ...found } = await setupVerl({ directory, python, torch, signal, onProgress: (line) => say(`  ${line}`) })
    const { version, packages } = report
    const versions = ['verl', 'torch', 'transformers', 'ray', 'vllm'].flatMap((name) =>
      packages[name] ? [`${name} ${packages[name]}`] : [],
    )
    say(isNew ? `\nready after ${((performance.now() - started) / 1000).toFixed(0)} s` : '\nready: it stood already')
    say(`  Python ${version}, ${versions.join(', ')}\n  ${found.python}`)
    const elsewhere =
      options.directory === undefined
        ? []
        : [`export AWORLD_TRAIN_PYTHON='${found.python.replaceAll("'", `'\\''`)}'   # by which trainings find it`]
    say(`\n${['next', ...elsewhere, typedCommand(['doctor', '--engine', 'verl', '--smoke'])].join('\n  ')}`)
    return exitCodes.done
  },
})
