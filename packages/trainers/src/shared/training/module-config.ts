import { join, resolve } from 'node:path'
import type { PlanInputs, PlanOptions, TrainerConfig, TrainerPlan } from '@aworld-train/core'
import {
  type InertSettings,
  inertNotes,
  isTree,
  type KeyTree,
  numberAt,
  type OwnConfig,
  type Stratify,
  TrainerSettings,
  type TrainerSource,
} from '@aworld-train/training'
import { z } from 'zod'
import type { ConfigurationAnswer, ConfigurationReader } from '../process/configuration-reader.ts'
import { contextLengthOf } from './plan-start.ts'

/** Our side of a run with a framework that is a module of the bridge. */
export const ModuleSettings = TrainerSettings.extend({
  rows: TrainerSettings.shape.rows.unwrap().default('last'),
  maxPromptTokens: z
    .int()
    .min(1)
    .nullable()
    .default(null)
    .describe(
      'Longest prompt in tokens. A longer one gives no row. `null` allows what the longest response leaves of the context of the model.',
    ),
})
export type ModuleSettings = z.infer<typeof ModuleSettings>

/** A configuration for a framework that is started as a module of the bridge. */
export interface ModuleConfig<Settings extends ModuleSettings = ModuleSettings> extends TrainerConfig<Settings> {
  /** The framework's keys. */
  readonly fields: KeyTree
  /** How the tasks of a batch are drawn; `null` leaves it to the framework. */
  readonly stratify: Stratify | null
  /** Whether sampler and trainer round alike. */
  readonly exact: boolean
  /** The framework's classes; `null` if no Python with the framework was found. */
  readonly reader: ConfigurationReader | null
}

/** The plan that a module of the bridge is started with. */
export interface ModulePlan extends TrainerPlan {
  readonly path: string
  readonly model: string
  readonly fields: KeyTree
  readonly stratify: Stratify | null
  readonly seed: number
  readonly templateArguments: KeyTree
  readonly deadlineSeconds: number | null
}

/** Longest response of a row in tokens: the framework's key, or half of the context, which is `null` if it is not known. */
export const responseTokens = (fields: KeyTree, key: string, context: number | null): number =>
  numberAt(fields, key, context === null ? 256 : Math.floor(context / 2))

export interface ModuleConfigParts<Settings extends ModuleSettings> {
  /** The framework's name, for people. */
  readonly title: string
  readonly source: TrainerSource
  readonly own: OwnConfig<Settings>
  readonly fields: KeyTree
  /** The framework's key of the longest response. */
  readonly responseLength: string
  readonly reader: ConfigurationReader | null
  /** `null` if the framework was not asked. */
  readonly answer: ConfigurationAnswer | null
  /** What distinguishes two trainings beside {fields, stratify}. */
  readonly identity: readonly unknown[]
  readonly notes: readonly string[]
  readonly problems: readonly string[]
}

export function toModuleConfig<Settings extends ModuleSettings>(parts: ModuleConfigParts<Settings>): ModuleConfig<Settings> {
  const { title, source, own, fields, responseLength, reader, answer, identity, notes, problems } = parts
  const { directory, where } = source
  const { settings, training } = own
  const { data, reward, model } = settings
  const context = model.path === null ? null : contextLengthOf(resolve(directory, model.path))
  const tokens = promptTokens(settings, context, responseTokens(fields, responseLength, context))
  const native = reward.native ? [`reward.native leaves scoring to ${title}, which has no reward here; pass rewardFunc.`] : []
  const stratify = training?.stratify ?? null
  return {
    directory,
    settings,
    fields,
    stratify,
    exact: answer?.exact ?? false,
    reader,
    version: answer?.version ?? null,
    names: {
      trainFiles: data.trainFiles,
      testFiles: data.testFiles,
      promptKey: data.promptKey,
      reward: { path: reward.path, name: reward.name },
      model: model.path,
    },
    usesModelTemplate: true,
    longestPrompt: tokens === null ? null : { tokens, leftOut: false },
    identity: [fields, ...identity, stratify],
    failed: [...source.failed, ...own.failed],
    notes: [...source.notes, ...notes, ...(answer?.notes ?? [])],
    problems: [...source.problems, ...own.problems, ...problems, ...native, ...(answer?.problems ?? [])].map((problem) =>
      where === null ? problem : `${where}: ${problem}`,
    ),
  }
}

/**
 * Has the framework's classes read the fields of a plan, in the Python that has read the configuration. Resolves to `null` without one, and
 * for a configuration that they have refused.
 */
export async function checkFields(
  { reader, problems }: ModuleConfig,
  question: object,
  { validate = false, signal }: PlanOptions,
): Promise<ConfigurationAnswer | null> {
  if (reader === null) return null
  const answer = problems.length > 0 ? null : await reader.read(question, signal)
  // No question follows a validation or a refusal, and the framework needs the memory of the machine.
  if (validate || answer === null) reader.close()
  return answer
}

export interface ModulePlanParts {
  readonly title: string
  readonly config: ModuleConfig
  readonly run: PlanInputs
  readonly fields: KeyTree
  /** The framework's keys of the longest response and of the number of steps. */
  readonly keys: { readonly responseLength: string; readonly steps: string }
  readonly steps: number | null
  readonly promptsPerBatch: number
  readonly seed: number
  readonly evaluation?: Partial<TrainerPlan['evaluation']> | undefined
  readonly answer: ConfigurationAnswer | null
  readonly notes: readonly string[]
  readonly problems: readonly string[]
}

export function toModulePlan(parts: ModulePlanParts): ModulePlan {
  const { title, config, run, fields, keys, steps, promptsPerBatch, seed, evaluation, answer, notes } = parts
  const { settings, stratify } = config
  const context = run.contextLength ?? null
  const maxResponseTokens = responseTokens(fields, keys.responseLength, context)
  const maxPromptTokens = promptTokens(settings, context, maxResponseTokens) ?? 1024
  const problems = [...parts.problems]
  if (context !== null && maxPromptTokens < 1)
    problems.push(
      `${keys.responseLength} is ${maxResponseTokens}, and the model's context of ${context} leaves nothing for a prompt; lower it.`,
    )
  if (stratify !== null) {
    const counted = Object.values(stratify.counts).reduce((sum, count) => sum + count, 0)
    if (counted !== promptsPerBatch)
      problems.push(`training.stratify counts ${counted} prompts, and a batch of ${title} has ${promptsPerBatch}; make them equal.`)
    if (steps === null) problems.push(`training.stratify needs a number of steps; set training.steps, or ${keys.steps}.`)
  }
  const { temperature, topP, topK, samplesPerPrompt } = settings.evaluation
  return {
    version: answer?.version ?? config.version ?? '',
    path: run.path,
    model: run.model ?? config.names.model ?? '',
    fields,
    stratify,
    seed,
    steps,
    checkpoints: join(run.path, 'checkpoints'),
    limits: { maxPromptTokens, maxResponseTokens },
    evaluation: { samples: samplesPerPrompt, temperature, topP, topK, ...evaluation },
    // With half precision, or with an engine of its own, the sampler rounds differently from the trainer.
    logprobTolerance: (answer ?? config).exact ? settings.logprobCheck.tolerance : null,
    templateArguments: settings.model.templateArguments,
    deadlineSeconds: (settings.limits.timeoutMs ?? settings.rolloutTimeoutMs) / 1000,
    notes,
    warnings: [],
    problems: [...problems, ...(answer?.problems ?? [])],
  }
}

/** `null` if the model's context is not known. */
const promptTokens = ({ maxPromptTokens }: ModuleSettings, context: number | null, response: number): number | null =>
  maxPromptTokens ?? (context === null ? null : context - response)

export interface RenderedTerms {
  readonly fields: Readonly<Record<string, unknown>>
  readonly notes: readonly string[]
  readonly problems: readonly string[]
}

/** Notes on general settings of ours that a framework's module does not support. */
export function inertTermNotes(
  own: KeyTree,
  { title, responseLength }: { readonly title: string; readonly responseLength: string },
): string[] {
  const inert: InertSettings = {
    'training.maxSampleTokens': `${responseLength} bounds a row`,
    'training.dropZeroVariance': 'a group whose rewards are all alike has advantage 0',
    'evaluation.topP': 'tokens are drawn from the whole distribution',
    'evaluation.topK': 'tokens are drawn from the whole distribution',
    'evaluation.greedy': 'test tasks are evaluated once, with evaluation.temperature',
  }
  const notes = inertNotes(own, inert, title)
  if (isTree(own['training']) && isTree(own['training']['logprobCheck']))
    notes.unshift(`training.logprobCheck is that of the engine in the box; logprobCheck is the one of ${title}.`)
  return notes
}
