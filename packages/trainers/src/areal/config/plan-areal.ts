import type { PlanInputs, PlanOptions } from '@aworld-train/core'
import { numberAt, setAt, valueAt } from '@aworld-train/training'
import { checkFields, responseTokens, toModulePlan } from '../../shared/training/module-config.ts'
import type { ArealConfig, ArealPlan } from './areal-config.ts'

/** Plans a start. Keys that the user left out follow from the model, the data or this run, each with a note. */
export async function planAreal(config: ArealConfig, run: PlanInputs, options: PlanOptions = {}): Promise<ArealPlan> {
  const { settings, warmupSteps, passes } = config
  const notes: string[] = []
  const problems: string[] = []
  const fields = structuredClone(config.fields) as Record<string, unknown>
  const fill = (path: string, value: unknown, why: string) => {
    if (valueAt(fields, path) !== undefined || value === null) return
    setAt(fields, path.split('.'), value)
    notes.push(`${path} = ${JSON.stringify(value)}: ${why}`)
  }
  const isEvery = (section: string) =>
    ['freq_steps', 'freq_epochs', 'freq_secs'].some((key) => numberAt(fields, `${section}.${key}`, null) !== null)
  fill('gconfig.max_new_tokens', responseTokens(fields, 'gconfig.max_new_tokens', run.contextLength ?? null), 'half of the model’s context')
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
  if (config.stratify !== null && !drawn && steps !== null)
    problems.push('training.stratify needs a number of steps and no epochs; set training.steps, or total_train_steps.')
  if (warmupSteps !== null && steps !== null)
    fill('actor.optimizer.warmup_steps_proportion', warmupSteps / (drawn ? steps : (inEpochs ?? steps)), 'training.warmupSteps')
  if (run.test && !isEvery('evaluator')) fill('evaluator.freq_steps', steps, 'test tasks are evaluated after the last step')
  if (!isEvery('recover')) fill('recover.freq_steps', 10, 'a checkpoint every ten steps')
  fill('seed', settings.seed, 'our seed')
  const { samplesPerPrompt, temperature, before } = settings.evaluation
  const plan = toModulePlan({
    title: 'AReaL',
    config,
    run,
    fields,
    keys: { responseLength: 'gconfig.max_new_tokens', steps: 'total_train_steps' },
    steps,
    promptsPerBatch: batch,
    seed: numberAt(fields, 'seed', settings.seed),
    evaluation: {
      samples: numberAt(fields, 'eval_gconfig.n_samples', samplesPerPrompt),
      temperature: numberAt(fields, 'eval_gconfig.temperature', temperature),
    },
    answer: await checkFields(config, { configuration: fields }, options),
    notes,
    problems,
  })
  return { ...plan, drawn, before, passes, keepCheckpoints: settings.keepCheckpoints }
}
