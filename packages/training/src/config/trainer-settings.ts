import { RowSelection } from '@aworld-train/core'
import { z } from 'zod'
import { EvaluationSettings, LimitSettings, LocalConfig, TrainingSettings } from './local-config.ts'

const count = z.int().min(1)
const ms = z.int().min(1)

/** Our side of a run that a framework of Python drives. A framework extends it by what it alone has. */
export const TrainerSettings = z.strictObject({
  rows: RowSelection.describe(
    'Rows that are trained of a rollout with several conversations: `all` of them, the `last` one, which gave the answer, the `longest`, or with `{ role: planner }` the last one of agent `planner`. TRL, AReaL and ms-swift train one row and refuse `all`.',
  ).default('all'),
  concurrency: count.default(64).describe('Rollouts that run at once. A framework launches whole batches; the rest wait.'),
  limits: LimitSettings.prefault({}).describe(
    'What one rollout may take. An episode that reaches a limit ends there, and `reward.unfinished` says what it is worth.',
  ),
  rolloutTimeoutMs: ms
    .default(1_200_000)
    .describe(
      'Wall time of one attempt of a rollout, in milliseconds from its start, not from when it was queued. `limits.timeoutMs` stands over it.',
    ),
  watchdogTimeoutMs: ms
    .nullable()
    .default(null)
    .describe(
      'Silence of the framework and all its rollouts after which the run ends with `TRAINER_PROCESS_DIED`, in milliseconds. `null` waits 30 minutes, or ten minutes more than a rollout may take where that is longer.',
    ),
  graceMs: ms
    .default(30_000)
    .describe('Time that the framework has to connect again, in milliseconds. Its rollouts are kept meanwhile, and cancelled after it.'),
  reward: LocalConfig.shape.reward
    .unwrap()
    .extend({
      native: z
        .boolean()
        .default(false)
        .describe(
          '`true` lets verl score by its own reward manager, so that episodes have no reward here. The other frameworks refuse it.',
        ),
    })
    .prefault({})
    .describe('The score of an episode.'),
  models: LocalConfig.shape.models,
  gateway: LocalConfig.shape.gateway,
  executor: LocalConfig.shape.executor,
  logging: LocalConfig.shape.logging,
  projectName: LocalConfig.shape.projectName,
  experimentName: LocalConfig.shape.experimentName,
  model: LocalConfig.shape.model,
  agent: LocalConfig.shape.agent,
  environment: LocalConfig.shape.environment,
  toolAnswers: LocalConfig.shape.toolAnswers,
  data: LocalConfig.shape.data,
  maxCompletionTokens: count
    .nullable()
    .default(null)
    .describe('Tokens that one answer of the model may have. A longer one is cut. `null` allows what is left of the longest response.'),
  evaluation: EvaluationSettings.extend({
    greedy: z
      .boolean()
      .default(false)
      .describe('Only the trainers `local` and `tinker` read it: a framework evaluates once, with `evaluation.temperature`.'),
  })
    .prefault({})
    .describe('How test tasks are evaluated.'),
  incompleteEpisodes: TrainingSettings.shape.incompleteEpisodes,
  ownReward: TrainingSettings.shape.ownReward,
  logprobCheck: z
    .strictObject({
      tolerance: z
        .number()
        .gt(0)
        .default(1e-4)
        .describe(
          "How far a sampled logprob may be from the trainer's, in nats. A larger difference ends the run with `POLICY_LOGPROB_MISMATCH`.",
        ),
    })
    .prefault({})
    .describe('The comparison of sampled and trained logprobs.'),
  seed: z.int().min(0).default(1).describe('Seed of the order of tasks and of every random draw.'),
  python: z
    .string()
    .min(1)
    .nullable()
    .default(null)
    .describe(
      'Interpreter that the framework is installed in. `null` takes `AWORLD_TRAIN_PYTHON`, else the environment that `setup` made, or another that has the framework.',
    ),
})
export type TrainerSettings = z.infer<typeof TrainerSettings>

const minuteMs = 60_000

/** Length of a silence in milliseconds after which a framework is ended. */
export function watchdogTimeoutMs({ watchdogTimeoutMs: set, rolloutTimeoutMs, limits }: TrainerSettings): number {
  return set ?? Math.max(30 * minuteMs, (limits.timeoutMs ?? rolloutTimeoutMs) + 10 * minuteMs)
}
