import { existsSync } from 'node:fs'
import { isAbsolute } from 'node:path'
import type { PlanInputs, PlanOptions, TrainerData } from '@aworld-train/core'
import { type KeyTree, numberAt } from '@aworld-train/training'
import { checkFields, type ModulePlan, responseTokens, toModulePlan } from '../shared/training/module-config.ts'
import { drawnOrder, writePlanFiles } from '../shared/training/write-plan-files.ts'
import { type GrpoFramework, generationOf, toQuestion } from './grpo-framework.ts'
import { type GrpoConfig, modelOf } from './read-grpo-config.ts'

/** The plan that the framework's module of the bridge is started with. That module defines its shape. */
export interface GrpoPlan extends ModulePlan {
  readonly section: KeyTree | null
}

/** Plans a start. Fields that the user left out follow from the model, the data or this run, each with a note. */
export async function planGrpo(config: GrpoConfig, run: PlanInputs, options: PlanOptions, framework: GrpoFramework): Promise<GrpoPlan> {
  const { settings, section, stratify } = config
  const { title, shuffleKey } = framework
  const notes: string[] = []
  const fields: Record<string, unknown> = { ...config.fields }
  const fill = (name: string, value: unknown, why: string) => {
    if (fields[name] !== undefined || value === null) return
    fields[name] = value
    notes.push(`${name} = ${JSON.stringify(value)}: ${why}`)
  }
  const context = run.contextLength ?? null
  const half = context === null ? 'the model’s context is not known' : 'half of the model’s context'
  fill('max_completion_length', responseTokens(fields, 'max_completion_length', context), half)
  const { prompts, updates } = generationOf(fields, framework)
  notes.push(...(framework.notesOf?.(fields, updates / numberAt(fields, 'num_iterations', 1)) ?? []))
  const steps = stepsOf(fields, run.train?.rows ?? null, { prompts, updates })
  if (run.test) {
    fill('eval_strategy', 'steps', 'there are test tasks')
    if (fields['eval_strategy'] === 'steps') fill('eval_steps', steps, 'they are evaluated after the last step')
    if (fields['eval_strategy'] !== 'no') fill('eval_on_start', settings.evaluation.before, 'evaluation.before')
  }
  // A killed run resumes from its last checkpoint, and transformers' default of 500 updates is long. The best model is only looked for if
  // both frequencies fit.
  if ((fields['save_strategy'] ?? 'steps') === 'steps' && fields['load_best_model_at_end'] !== true)
    fill('save_steps', Math.ceil(10 * updates), 'a checkpoint every ten batches of rollouts')
  fill('seed', settings.seed, 'our seed')
  if (stratify !== null) fields[shuffleKey] = false
  const named = modelOf(config.directory, run.model ?? config.names.model)
  // Before the warm-up there is no model to ask about.
  const model = named !== null && isAbsolute(named) && !existsSync(named) ? null : named
  const plan = toModulePlan({
    title,
    config,
    run,
    fields,
    keys: { responseLength: 'max_completion_length', steps: 'max_steps' },
    steps,
    promptsPerBatch: prompts,
    seed: Number(fields['seed']),
    answer: await checkFields(config, toQuestion(framework, { configuration: fields, section, model }), options),
    notes,
    problems: [],
  })
  return { ...plan, section }
}

/** Number of updates: `max_steps`, or as many as the epochs over the tasks take; `null` if the number of tasks is not known. */
function stepsOf(fields: KeyTree, rows: number | null, { prompts, updates }: ReturnType<typeof generationOf>): number | null {
  const maxSteps = numberAt(fields, 'max_steps', -1)
  if (maxSteps > 0) return maxSteps
  return rows === null ? null : Math.ceil(numberAt(fields, 'num_train_epochs', 3) * Math.floor(rows / prompts) * updates)
}

/**
 * Writes the files that the framework's module reads: {model, configuration, tasks, order, evaluation, …}, and its section under its name.
 */
export async function writeGrpoFiles(plan: GrpoPlan, data: TrainerData, framework: GrpoFramework): Promise<string[]> {
  const { path, model, fields, section, stratify, steps, seed, evaluation, limits, logprobTolerance, checkpoints } = plan
  const { samples, temperature } = evaluation
  const { prompts, updates } = generationOf(fields, framework)
  return await writePlanFiles({
    path,
    trainer: framework.name,
    data,
    order: (tasks) =>
      stratify === null || steps === null
        ? null
        : drawnOrder(tasks, { batches: Math.ceil(steps / updates), promptsPerBatch: prompts, seed, stratify }),
    plan: {
      model,
      configuration: fields,
      ...(framework.section !== null && { [framework.section]: section }),
      evaluation: { samples, sampling: { temperature } },
      maxPromptTokens: limits.maxPromptTokens,
      logprobTolerance,
      templateArguments: plan.templateArguments,
      deadlineSeconds: plan.deadlineSeconds,
      checkpoints,
    },
  })
}
