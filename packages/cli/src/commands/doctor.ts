import { availableParallelism } from 'node:os'
import { resolve } from 'node:path'
import { checkTemplate } from '@aworld-train/chat'
import { errorMessage, TrainError } from '@aworld-train/core'
import { probeMachine } from '@aworld-train/engines/local'
import { type DoctorCheck, describeTinker, diagnose, pythonTrainers, type TrainingDefinition } from 'aworld-train'
import { z } from 'zod'
import { defineCommand } from '../define-command.ts'
import { exitCodes } from '../exit-codes.ts'
import { loadProject } from '../load-project.ts'
import { createCheckReport } from './check-report.ts'
import { templateChecks } from './template-checks.ts'
import { trainerChecks } from './trainer-checks.ts'

export const doctor = defineCommand({
  arguments: [
    { name: 'project', description: 'folder with an aworld-train.config.ts, or that file; without one only the machine is checked' },
  ],
  options: z.object({
    template: z.string().optional().describe('check the tokenizer and chat template of this Hugging Face folder'),
    templateArguments: z.string().optional().describe('arguments of that template as a JSON object, such as {"enable_thinking": false}'),
    engine: z
      .enum([...pythonTrainers.map(({ name }) => name), 'tinker'])
      .optional()
      .describe('check what this trainer needs instead: its Python, GPUs, memory, disk and the bridge, or its service'),
    config: z
      .string()
      .optional()
      .describe('with --engine: a configuration to resolve and check for traps; that of the project unless given'),
    smoke: z.boolean().optional().describe('with --engine: train a random model for two steps on the processor, with everything real'),
    json: z.boolean().optional().describe('print the checks as JSON; what your code prints goes to standard error'),
  }),
  async run({ args, options, signal, output }) {
    const report = createCheckReport({ json: options.json ?? false, output })
    report.add(...nodeChecks())
    const trainer = pythonTrainers.find(({ name }) => name === options.engine)
    if (trainer === undefined && (options.config !== undefined || options.smoke))
      throw new TrainError('CONFIG_INVALID', '--config and --smoke are of a trainer in Python; add --engine, such as --engine verl.')
    if (trainer) {
      await trainerChecks({ trainer, project: args[0], config: options.config, smoke: options.smoke ?? false, report, signal })
      return report.end() === 0 ? exitCodes.done : exitCodes.failed
    }
    if (options.engine === 'tinker') {
      report.add(
        ...(args[0] === undefined ? [await serviceCheck(signal)] : await projectChecks(args[0], signal, { trainEngineName: 'tinker' })),
      )
      return report.end() === 0 ? exitCodes.done : exitCodes.failed
    }
    report.add(...(await engineChecks()))
    if (options.template !== undefined) {
      const templateArguments = readArguments(options.templateArguments)
      report.add(...templateChecks(await checkTemplate(resolve(options.template), { templateArguments })))
    }
    if (args[0] !== undefined) report.add(...(await projectChecks(args[0], signal)))
    return report.end() === 0 ? exitCodes.done : exitCodes.failed
  },
})

function nodeChecks(): DoctorCheck[] {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  const recent = major > 22 || (major === 22 && minor >= 19)
  return [
    { name: 'node', ok: recent, message: recent ? process.version : `${process.version} is older than 22.19; install a newer Node` },
    { name: 'cores', ok: true, message: String(availableParallelism()) },
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
    return [{ name: 'simd', ok: false, message: errorMessage(error) }]
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

/** The service that the environment names. */
async function serviceCheck(signal: AbortSignal): Promise<DoctorCheck> {
  try {
    return { name: 'service', ok: true, message: await describeTinker(undefined, signal) }
  } catch (error) {
    return { name: 'service', ok: false, message: errorMessage(error) }
  }
}

async function projectChecks(target: string, signal: AbortSignal, change: Partial<TrainingDefinition> = {}): Promise<DoctorCheck[]> {
  let definition: TrainingDefinition
  try {
    definition = { ...(await loadProject(target)).definition, ...change }
  } catch (error) {
    return [{ name: 'project', ok: false, message: errorMessage(error) }]
  }
  return await diagnose(definition, signal)
}
