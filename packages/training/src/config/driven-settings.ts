import { z } from 'zod'
import { CallSettings } from './call-settings.ts'
import { FrozenModelSettings } from './frozen-model.ts'
import { EvaluationSettings, LimitSettings, LocalConfig } from './local-config.ts'

const count = z.int().min(1)
const ms = z.int().min(1)

/** Our side of a run that a framework of Python drives. A framework extends it by what it alone has. */
export const DrivenSettings = z.strictObject({
  /** Which rows of a rollout with several conversations are trained. */
  rows: z.enum(['all', 'last', 'longest']).default('all'),
  /** Rollouts at once; a framework launches whole batches, the rest queue. */
  concurrency: count.default(64),
  limits: LimitSettings.prefault({}),
  /** From the start of a rollout, not from when it was queued. */
  rolloutTimeoutMs: ms.default(1_200_000),
  /** How long the framework and its rollouts may be silent before it is ended. `null`: 30 minutes, or ten more than a rollout may take. */
  watchdogTimeoutMs: ms.nullable().default(null),
  /** How long a lost connection keeps its rollouts. */
  graceMs: ms.default(30_000),
  reward: LocalConfig.shape.reward
    .unwrap()
    .extend({
      /** Whether the framework scores, so that episodes have no reward here. */
      native: z.boolean().default(false),
    })
    .prefault({}),
  /** Models that are not trained, by the name that agents ask for. */
  models: z.record(z.string().min(1), FrozenModelSettings).default({}),
  gateway: CallSettings.prefault({}),
  /** How earlier turns are rendered, and the variables of every rendering. */
  model: LocalConfig.shape.model,
  agent: LocalConfig.shape.agent,
  toolAnswers: LocalConfig.shape.toolAnswers,
  data: LocalConfig.shape.data,
  /** Tokens of one completion; `null`: what is left of the longest response. */
  maxCompletionTokens: count.nullable().default(null),
  evaluation: EvaluationSettings.extend({
    greedy: z
      .boolean()
      .default(false)
      .describe('Made by the trainers `local` and `tinker` alone: a framework evaluates once, with `evaluation.temperature`.'),
  }).prefault({}),
  incompleteEpisodes: z.enum(['train', 'exclude']).default('train'),
  logprobCheck: z.strictObject({ tolerance: z.number().gt(0).default(1e-4) }).prefault({}),
  seed: z.int().min(0).default(1),
  /** Python that the framework is installed in; `null`: found by itself. */
  python: z.string().min(1).nullable().default(null),
})
export type DrivenSettings = z.infer<typeof DrivenSettings>

const minuteMs = 60_000

/** After how long a silence a framework is ended, in milliseconds. */
export function watchdogTimeoutMs({ watchdogTimeoutMs: set, rolloutTimeoutMs, limits }: DrivenSettings): number {
  return set ?? Math.max(30 * minuteMs, (limits.timeoutMs ?? rolloutTimeoutMs) + 10 * minuteMs)
}
