import { join } from 'node:path'
import type { DrivenRun, PlanOptions } from '@aworld-train/core'
import { askSwift } from './ask-swift.ts'
import { generationOf, numberAt } from './generation-of.ts'
import { completionTokens, promptTokens } from './read-swift-config.ts'
import type { SwiftConfig, SwiftFields, SwiftPlan } from './swift-config.ts'

/** Plans a start: the fields that the user left out and that follow from the model, the data or this run, each with a note. */
export async function planSwift(config: SwiftConfig, run: DrivenRun, { validate = false, signal }: PlanOptions = {}): Promise<SwiftPlan> {
  const { settings, stratify } = config
  const notes: string[] = []
  const problems: string[] = []
  const fields: Record<string, unknown> = { ...config.fields }
  const fill = (name: string, value: unknown, why: string) => {
    if (fields[name] !== undefined || value === null) return
    fields[name] = value
    notes.push(`${name} = ${JSON.stringify(value)}: ${why}`)
  }
  const model = run.model ?? config.names.model
  const context = run.contextLength ?? null
  const half = context === null ? 'the model’s context is not known' : 'half of the model’s context'
  fill('max_completion_length', completionTokens(fields, context), half)
  const steps = stepsOf(fields, run.train?.rows ?? null)
  if (run.test) {
    fill('eval_strategy', 'steps', 'there are test tasks')
    if (fields['eval_strategy'] === 'steps') fill('eval_steps', steps, 'they are evaluated after the last step')
    if (fields['eval_strategy'] !== 'no') fill('eval_on_start', settings.evaluation.before, 'evaluation.before')
  }
  // A killed run goes on from its last checkpoint, and swift's own 500 updates are many; the best model is only looked for where both frequencies fit.
  if ((fields['save_strategy'] ?? 'steps') === 'steps' && fields['load_best_model_at_end'] !== true)
    fill('save_steps', Math.ceil(10 * generationOf(fields).updates), 'a checkpoint every ten batches of rollouts')
  fill('seed', settings.seed, 'aworldTrain.seed')
  if (stratify !== null) fields['train_dataloader_shuffle'] = false
  const maxPromptTokens = promptTokens(settings, fields, context) ?? 1024
  const maxResponseTokens = Number(fields['max_completion_length'])
  if (context !== null && maxPromptTokens < 1)
    problems.push(
      `max_completion_length is ${maxResponseTokens}, and the model's context of ${context} leaves nothing for a prompt; lower it.`,
    )
  if (stratify !== null) {
    const { prompts } = generationOf(fields)
    const counted = Object.values(stratify.counts).reduce((sum, count) => sum + count, 0)
    if (counted !== prompts)
      problems.push(`training.stratify counts ${counted} prompts, and a batch of ms-swift has ${prompts}; make them equal.`)
  }
  if (stratify !== null && steps === null) problems.push('training.stratify needs a number of steps; set training.steps, or max_steps.')
  const answer = validate && run.python ? await askSwift({ configuration: fields, model }, { python: run.python, signal }) : null
  const { temperature, topP, topK, samplesPerPrompt } = settings.evaluation
  return {
    version: answer?.version ?? config.version ?? '',
    path: run.path,
    model: model ?? '',
    fields,
    stratify,
    seed: Number(fields['seed']),
    steps,
    checkpoints: join(run.path, 'checkpoints'),
    limits: { maxPromptTokens, maxResponseTokens },
    evaluation: { samples: samplesPerPrompt, temperature, topP, topK },
    // Half precision, and an engine of its own, round otherwise than the trainer does.
    logprobTolerance: (answer ?? config).exact ? settings.logprobCheck.tolerance : null,
    templateArguments: settings.model.templateArguments,
    deadlineSeconds: (settings.limits.timeoutMs ?? settings.rolloutTimeoutMs) / 1000,
    notes,
    warnings: [],
    problems: [...problems, ...(answer?.problems ?? [])],
  }
}

/** Updates in all: `max_steps`, else what the epochs over the tasks come to; `null` where the number of tasks is not known. */
function stepsOf(fields: SwiftFields, rows: number | null): number | null {
  const maxSteps = numberAt(fields, 'max_steps', -1)
  if (maxSteps > 0) return maxSteps
  if (rows === null) return null
  const { prompts, updates } = generationOf(fields)
  return Math.ceil(numberAt(fields, 'num_train_epochs', 3) * Math.floor(rows / prompts) * updates)
}
