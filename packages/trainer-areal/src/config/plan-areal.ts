import { join } from 'node:path'
import type { DrivenRun, PlanOptions } from '@aworld-train/core'
import { setAt } from '@aworld-train/training'
import { type ArealConfig, type ArealPlan, numberAt, valueAt } from './areal-config.ts'
import { askAreal } from './ask-areal.ts'
import { promptTokens, responseTokens } from './read-areal-config.ts'

/** Plans a start: the keys that the user left out and that follow from the model, the data or this run, each with a note. */
export async function planAreal(config: ArealConfig, run: DrivenRun, { validate = false, signal }: PlanOptions = {}): Promise<ArealPlan> {
  const { settings, stratify, warmupSteps, passes } = config
  const notes: string[] = []
  const problems: string[] = []
  const fields = structuredClone(config.fields) as Record<string, unknown>
  const fill = (path: string, value: unknown, why: string) => {
    if (valueAt(fields, path) !== undefined || value === null) return
    setAt(fields, path.split('.'), value)
    notes.push(`${path} = ${JSON.stringify(value)}: ${why}`)
  }
  const context = run.contextLength ?? null
  fill('gconfig.max_new_tokens', responseTokens(fields, context), 'half of the model’s context')
  const batch = numberAt(fields, 'train_dataset.batch_size', 1)
  const rows = run.train?.rows ?? null
  const wanted = numberAt(fields, 'total_train_steps', null)
  const drawn = wanted !== null && valueAt(fields, 'total_train_epochs') === undefined
  const perEpoch = rows === null ? null : Math.floor(rows / batch)
  const inEpochs = perEpoch === null ? null : numberAt(fields, 'total_train_epochs', 1) * perEpoch
  const steps = drawn ? wanted : inEpochs === null ? null : Math.min(wanted ?? Number.POSITIVE_INFINITY, inEpochs)
  if (drawn) setAt(fields, ['train_dataset', 'shuffle'], false)
  else if (perEpoch === 0)
    problems.push(`train_dataset.batch_size is ${batch}, and there are ${rows} training tasks; lower it, or set total_train_steps.`)
  if (warmupSteps !== null && steps !== null)
    fill('actor.optimizer.warmup_steps_proportion', warmupSteps / (drawn ? steps : (inEpochs ?? steps)), 'training.warmupSteps')
  if (run.test && !['freq_steps', 'freq_epochs', 'freq_secs'].some((key) => numberAt(fields, `evaluator.${key}`, null) !== null))
    fill('evaluator.freq_steps', steps, 'test tasks are evaluated after the last step')
  if (!['freq_steps', 'freq_epochs', 'freq_secs'].some((key) => numberAt(fields, `recover.${key}`, null) !== null))
    fill('recover.freq_steps', 10, 'a checkpoint every ten steps')
  fill('seed', settings.seed, 'aworldTrain.seed')
  const maxPromptTokens = promptTokens(settings, fields, context) ?? 1024
  const maxResponseTokens = responseTokens(fields, context)
  if (context !== null && maxPromptTokens < 1)
    problems.push(
      `gconfig.max_new_tokens is ${maxResponseTokens}, and the model's context of ${context} leaves nothing for a prompt; lower it.`,
    )
  if (stratify !== null) {
    const counted = Object.values(stratify.counts).reduce((sum, count) => sum + count, 0)
    if (counted !== batch) problems.push(`training.stratify counts ${counted} prompts, and a batch of AReaL has ${batch}; make them equal.`)
    if (!drawn) problems.push('training.stratify needs a number of steps; set training.steps, or total_train_steps, and no epochs.')
  }
  const answer = validate && run.python ? await askAreal({ configuration: fields }, { python: run.python, signal }) : null
  const { temperature, topP, topK, samplesPerPrompt, before } = settings.evaluation
  return {
    version: answer?.version ?? config.version ?? '',
    path: run.path,
    model: run.model ?? config.names.model ?? '',
    fields,
    stratify,
    seed: numberAt(fields, 'seed', settings.seed),
    drawn,
    before,
    passes,
    steps,
    checkpoints: join(run.path, 'checkpoints'),
    limits: { maxPromptTokens, maxResponseTokens },
    evaluation: {
      samples: numberAt(fields, 'eval_gconfig.n_samples', samplesPerPrompt),
      temperature: numberAt(fields, 'eval_gconfig.temperature', temperature),
      topP,
      topK,
    },
    // Half precision, and an engine of its own, round otherwise than the trainer does.
    logprobTolerance: (answer ?? config).exact ? settings.logprobCheck.tolerance : null,
    templateArguments: settings.model.templateArguments,
    deadlineSeconds: (settings.limits.timeoutMs ?? settings.rolloutTimeoutMs) / 1000,
    notes,
    warnings: [],
    problems: [...problems, ...(answer?.problems ?? [])],
  }
}
