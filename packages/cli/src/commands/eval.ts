import { existsSync, readdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { TrainError } from '@aworld-train/core'
import { AgentTrainer, type AgentTrainerOptions, type InferenceReport, pythonTrainers } from 'aworld-train'
import { z } from 'zod'
import { defineCommand } from '../define-command.ts'
import { loadProject } from '../load-project.ts'
import { policiesIn } from '../policies-in.ts'
import { createRunDisplay } from '../terminal/run-display.ts'
import { renderTokenReport } from '../terminal/token-report-text.ts'
import { typedCommand, typedPath } from '../typed-command.ts'

export const evaluate = defineCommand({
  arguments: [{ name: 'project', description: 'folder with an aworld-train.config.ts, or that file (default: this folder)' }],
  options: z.object({
    agent: z.string().optional().describe('agent instead of that of the project: ./file.ts#name, or an agent.yaml'),
    dataset: z.string().optional().describe('dataset to run, instead of the test set of the project'),
    checkpoint: z
      .string()
      .optional()
      .describe('model folder, checkpoint or run to evaluate, instead of the starting model; weights at a Tinker service too'),
    samples: z.int().min(1).optional().describe('rollouts of each task; pass@k is given for k up to this'),
    seed: z.int().min(0).optional().describe('seed of sampling'),
    runPath: z.string().optional().describe('parent folder of runs (default: runs)'),
    json: z.boolean().optional().describe('print one JSON event a line instead of text; what your code prints goes to standard error'),
  }),
  async run({ args, options, signal, output }) {
    const { definition } = await loadProject(args[0])
    const display = createRunDisplay({ stream: output, json: options.json === true })
    try {
      const trainer = await AgentTrainer.create({
        ...definition,
        ...(options.agent === undefined ? {} : { agent: resolve(options.agent) }),
        ...(options.runPath === undefined ? {} : { runPath: options.runPath }),
        seed: options.seed ?? definition.seed,
        ...(options.checkpoint === undefined ? {} : weightsOf(options.checkpoint)),
        samples: options.samples,
        onEvent: (event) => display.show(event),
      })
      const dataset = options.dataset === undefined ? undefined : resolve(options.dataset)
      const report = await trainer.inference<InferenceReport>(dataset, signal)
      display.close()
      if (!options.json) output.write(`${renderInference(report)}\n`)
      return 0
    } finally {
      display.close()
    }
  },
})

type Weights = Pick<AgentTrainerOptions, 'model' | 'checkpoint' | 'trainEngineName'>

/**
 * The weights of a model folder, of a checkpoint, or of the last checkpoint of a run. They are here, or at a Tinker service that a pointer
 * names.
 */
function weightsOf(path: string): Weights {
  const folder = resolve(path)
  const weights = weightsIn(folder)
  if (weights) return weights
  const checkpoints = join(folder, 'checkpoints')
  const names = existsSync(checkpoints) ? readdirSync(checkpoints) : []
  for (const name of names.sort((a, b) => stepOf(b) - stepOf(a))) {
    const found = weightsIn(join(checkpoints, name))
    if (found) return found
  }
  const trainer = pythonTrainers.find((each) => each.checkpoints.resumable(checkpoints) > 0)
  if (trainer)
    throw new TrainError(
      'MODULE_INVALID',
      `${folder} is a run with ${trainer.name}, whose checkpoints are its own; write a model first: ${typedCommand(['export', path, '--what', 'model', '--to', 'model'])}`,
    )
  throw new TrainError('MODULE_INVALID', `${folder} holds neither a model (config.json) nor checkpoints; name a model folder or a run.`)
}

function weightsIn(folder: string): Weights | null {
  if (existsSync(join(folder, 'config.json'))) return { model: folder }
  // A run may have the model that a warm-up made, in a folder of its own.
  const isRun = existsSync(join(folder, 'manifest.json'))
  const hasPolicies = (file: 'config.json' | 'tinker.json') => !isRun && policiesIn(folder, file).length > 0
  if (existsSync(join(folder, 'tinker.json')) || hasPolicies('tinker.json')) return { checkpoint: folder, trainEngineName: 'tinker' }
  return hasPolicies('config.json') ? { checkpoint: folder } : null
}

const stepOf = (name: string) => Number(/\d+/.exec(name)?.[0] ?? -1)

/** The lines of the report below the mean, which was shown when the evaluation ended. */
function renderInference({ path, passAtK, byKind, tokenReport, model, checkpoint, policies }: InferenceReport): string {
  const weights = policies ? Object.entries(policies) : [[null, { model: model as string, checkpoint }] as const]
  const passes = Object.entries(passAtK).map(([k, value]) => `pass@${k} ${value.toFixed(3)}`)
  const kinds = Object.entries(byKind).map(([kind, { reward }]) => `${kind} ${reward.toFixed(3)}`)
  return [
    ...(kinds.length > 1 ? [`kinds    ${kinds.join('  ')}`] : []),
    ...(passes.length > 0 ? [`pass@k   ${passes.join('  ')}`] : []),
    ...renderTokenReport(tokenReport),
    ...weights.map(
      ([name, own]) =>
        `model    ${name === null ? '' : `${name}: `}${typedPath(own.model)}${own.checkpoint === null ? '' : `, weights of ${typedPath(own.checkpoint)}`}`,
    ),
    `results  ${typedPath(join(path, 'report.json'))}`,
  ].join('\n')
}
