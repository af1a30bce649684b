import { availableParallelism } from 'node:os'
import { resolve } from 'node:path'
import { styleText } from 'node:util'
import { checkTemplate } from '@aworld-train/chat'
import { probeMachine } from '@aworld-train/engine-local'
import { TrainError } from '@aworld-train/protocol'
import { type DoctorCheck, diagnose, type TrainingDefinition } from 'aworld-train'
import { z } from 'zod'
import { defineCommand } from '../define-command.ts'
import { exitCodes } from '../exit-codes.ts'
import { loadProject } from '../load-project.ts'
import { templateChecks } from './template-checks.ts'

export const doctor = defineCommand({
  arguments: [
    { name: 'project', description: 'folder with an aworld-train.config.ts, or that file; without one only the machine is checked' },
  ],
  options: z.object({
    template: z.string().optional().describe('check the tokenizer and chat template of this Hugging Face folder'),
    templateArguments: z.string().optional().describe('arguments of that template as a JSON object, such as {"enable_thinking": false}'),
    json: z.boolean().optional().describe('print the checks as JSON'),
  }),
  async run({ args, options, signal }) {
    const checks: DoctorCheck[] = [...(await machineChecks())]
    if (options.template !== undefined) {
      const templateArguments = readArguments(options.templateArguments)
      checks.push(...templateChecks(await checkTemplate(resolve(options.template), { templateArguments })))
    }
    if (args[0] !== undefined) checks.push(...(await projectChecks(args[0], signal)))
    const problems = checks.filter(({ ok }) => !ok).length
    if (options.json) process.stdout.write(`${JSON.stringify({ problems, checks }, null, 2)}\n`)
    else {
      for (const { name, ok, message } of checks)
        process.stdout.write(
          `${ok ? styleText('green', 'ok     ') : styleText('red', 'problem')} ${name.padEnd(14)} ${message.replaceAll('\n', `\n${' '.repeat(23)}`)}\n`,
        )
      process.stdout.write(problems === 0 ? '\nno problems\n' : `\n${problems} problem${problems === 1 ? '' : 's'}\n`)
    }
    return problems === 0 ? exitCodes.done : exitCodes.failed
  },
})

async function machineChecks(): Promise<DoctorCheck[]> {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  const recent = major > 22 || (major === 22 && minor >= 19)
  return [
    { name: 'node', ok: recent, message: recent ? process.version : `${process.version} is older than 22.19; install a newer Node` },
    { name: 'cores', ok: true, message: String(availableParallelism()) },
    ...(await engineChecks()),
  ]
}

async function engineChecks(): Promise<DoctorCheck[]> {
  try {
    const { simd, threads } = await probeMachine()
    const speed = simd === 'plain' ? 'plain: the same bits on every machine' : 'relaxed: faster, its bits may differ between machines'
    return [
      { name: 'simd', ok: true, message: speed },
      { name: 'threads', ok: true, message: `${threads} for sampling and training` },
    ]
  } catch (error) {
    return [{ name: 'simd', ok: false, message: error instanceof Error ? error.message : String(error) }]
  }
}

/** The JSON object of `--template-arguments`. */
function readArguments(text: string | undefined): Record<string, unknown> {
  if (text === undefined) return {}
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>
  } catch {}
  throw new TrainError(
    'CONFIG_INVALID',
    `--template-arguments ${text} is not a JSON object; write for example '{"enable_thinking": false}'.`,
  )
}

async function projectChecks(target: string, signal: AbortSignal): Promise<DoctorCheck[]> {
  let definition: TrainingDefinition
  try {
    definition = (await loadProject(target)).definition
  } catch (error) {
    return [{ name: 'project', ok: false, message: error instanceof Error ? error.message : String(error) }]
  }
  return await diagnose(definition, signal)
}
