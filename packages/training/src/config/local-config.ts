import type { PolicyLoss } from '@aworld-train/core'
import { defaultAttemptMs } from '@aworld-train/protocol'
import { z } from 'zod'
import { CallSettings } from './call-settings.ts'
import { ExecutorSettings } from './executor-settings.ts'
import { FrozenModelSettings } from './frozen-model.ts'
import { PublicUrl, TlsFiles } from './listener.ts'

const fraction = z.number().min(0).max(1)

/** Which draws of a step's tasks come from which kind: `counts` maps the value in the column `key` to prompts per step. */
export const Stratify = z.strictObject({
  key: z.string().min(1),
  counts: z.record(z.string(), z.int().min(0)),
})
export type Stratify = z.infer<typeof Stratify>

/** How rewards of a group become advantages; formulas and sources stand in core's `advantages`. */
export const AdvantageEstimator = z.enum(['group-relative', 'group-relative-unscaled', 'leave-one-out', 'none'])

/** What one training step is made of. Learning rates are per update; `finalLearningRateFraction` is what the linear decay ends at. */
export const TrainingSettings = z.strictObject({
  /** Steps in all; `null` takes `epochs` over the training tasks. */
  steps: z.int().min(1).nullable().default(null),
  epochs: z.int().min(1).default(1),
  promptsPerStep: z.int().min(1).default(16),
  samplesPerPrompt: z.int().min(1).default(8),
  firstSamples: z
    .int()
    .min(2)
    .nullable()
    .default(null)
    .describe(
      'Samples of a prompt that are taken first, fewer than `samplesPerPrompt`: where all of them are solved, the rest is not started. `null` takes all at once.',
    ),
  teachingPrompts: z
    .int()
    .min(1)
    .nullable()
    .default(null)
    .describe(
      'Prompts whose samples earn differently that a step waits for: in place of the others it draws more than `promptsPerStep`, up to `maxPrompts`. `null` takes the prompts that it drew.',
    ),
  maxPrompts: z
    .int()
    .min(1)
    .nullable()
    .default(null)
    .describe('Prompts that a step draws at most where it waits for `teachingPrompts`; `null` is twice `promptsPerStep`.'),
  solvedReward: z.number().default(1).describe('Least reward of a sample that counts as solved for `firstSamples`.'),
  /** Steps that groups may be admitted ahead of the one that is trained: the oldest that are ready train next, and none is dropped for its age. 0 samples every step with the weights of the step before. */
  maxStaleness: z.int().min(0).default(0),
  /** Whether a step waits for a group that is `maxStaleness` steps old, so that none is trained later than that. */
  hardStaleness: z.boolean().default(false),
  stratify: Stratify.nullable().default(null),
  /** Times that the update goes over the batch of a step. */
  passes: z.int().min(1).default(1),
  /** Prompts per update; `null` is all prompts of the step. */
  promptsPerUpdate: z.int().min(1).nullable().default(null),
  advantage: AdvantageEstimator.default('group-relative'),
  dropZeroVariance: z.boolean().default(true),
  /** Whether episodes that ended at a limit (turns, tool calls, tokens, context) are trained with the reward they got. */
  incompleteEpisodes: z.enum(['train', 'exclude']).default('train'),
  maxSampleTokens: z.int().min(2).nullable().default(null),
  clipLow: z.number().min(0).max(1).default(0.2),
  clipHigh: z.number().min(0).default(0.28),
  klCoefficient: z.number().min(0).default(0),
  entropyCoefficient: z.number().default(0),
  aggregation: z.enum(['token-mean', 'sequence-mean']).default('token-mean'),
  loss: z
    .union([
      z.string().min(1),
      z.custom<PolicyLoss>((value) => typeof value === 'function', 'must be a path such as ./loss.ts#name, or a function'),
    ])
    .nullable()
    .default(null)
    .describe(
      'A loss of your own in place of the clipped one: `./loss.ts#name`, or in code a function. It costs a forward pass an update; `clipLow` and `clipHigh` are not its, `klCoefficient` and `entropyCoefficient` add their terms to it, which `aggregation` weighs.',
    ),
  learningRate: z.number().min(0).default(1e-3),
  /** Steps in which the learning rate rises to its value; `model.warmUp` is something else, which makes a starting model. */
  warmupSteps: z.int().min(0).default(5),
  /** Part of all steps in which it rises, in place of `warmupSteps`. */
  warmupFraction: fraction.nullable().default(null),
  finalLearningRateFraction: fraction.default(0.2),
  weightDecay: z.number().min(0).default(0.01),
  betas: z.tuple([fraction, fraction]).default([0.9, 0.98]),
  epsilon: z.number().gt(0).default(1e-8),
  maxGradNorm: z.number().min(0).default(1),
  /** Steps between checkpoints. The last step always has one; with `null` no other step does. */
  checkpointEvery: z.int().min(1).nullable().default(10),
  /** Steps between evaluations on the validation tasks; `null` is none. */
  evaluateEvery: z.int().min(1).nullable().default(null),
  /** Tokens of each step whose logprobs are recomputed before the update, and how far they may differ. */
  logprobCheck: z.strictObject({ tokens: z.int().min(0).default(64), tolerance: z.number().gt(0).default(1e-4) }).prefault({}),
})
export type TrainingSettings = z.infer<typeof TrainingSettings>

export const SamplingSettings = z.strictObject({
  temperature: z.number().min(0).default(1),
  topP: z.number().gt(0).max(1).default(1),
  topK: z.int().min(0).default(0),
  /** Tokens of one completion. */
  maxTokens: z.int().min(1).default(512),
})
export type SamplingSettings = z.infer<typeof SamplingSettings>

export const LimitSettings = z.strictObject({
  maxTurns: z.int().min(1).nullable().default(null),
  maxTokens: z.int().min(1).nullable().default(null),
  maxToolCalls: z.int().min(0).nullable().default(null),
  /** Wall time of one attempt, in milliseconds; `null` for that of `rolloutTimeoutMs`. */
  timeoutMs: z.int().min(1).nullable().default(null),
  /** US dollars that calls to `models` may cost in one rollout. */
  maxCost: z.number().min(0).nullable().default(null),
  /** Prompt and completion tokens of calls to `models` in one rollout. */
  maxFrozenTokens: z.int().min(0).nullable().default(null),
})

export const EvaluationSettings = z.strictObject({
  temperature: z.number().min(0).default(1),
  topP: z.number().gt(0).max(1).default(1),
  topK: z.int().min(0).default(0),
  samplesPerPrompt: z.int().min(1).default(1),
  /** Evaluate the test tasks before the first step. */
  before: z.boolean().default(true),
  /** Evaluate with temperature 0 as well. */
  greedy: z.boolean().default(true),
  /** Column that splits the result by kind; `null` splits by data source. */
  kindKey: z.string().nullable().default(null),
})
export type EvaluationSettings = z.infer<typeof EvaluationSettings>

/** What an agent makes of its policy. */
export const AgentSettings = z.strictObject({
  /** What becomes of a tool call that cannot be read: `tool-error` tells an `Agent` so, which goes on; with `answer` its text is the answer. Other agents get the text. */
  malformedCalls: z.enum(['answer', 'tool-error']).default('tool-error'),
})

/** What the policy reads of answers of tools that are too large for its context. */
export const ToolAnswerSettings = z.strictObject({
  /** Longest answer of a tool in tokens of the policy; `null`: whole. The episode keeps all of it. */
  maxTokens: z.int().min(1).nullable().default(null),
  /** The part that is left out of a longer one. */
  cut: z.enum(['head', 'tail', 'middle']).default('middle'),
})

/** What becomes of an episode that ended at a limit of turns, tool calls, tokens, cost or context. */
export const UnfinishedReward = z
  .enum(['zero', 'score', 'exclude'])
  .default('zero')
  .describe(
    'What an episode gets that ended at a limit of turns, tool calls, tokens, cost or context: 0 (`zero`), what the reward makes of it (`score`), or nothing (`exclude`: untrained, and in no mean).',
  )

/** Configuration of a run of the engine in the box. Every field has a default. */
export const LocalConfig = z.strictObject({
  model: z
    .strictObject({
      /** A Hugging Face folder. */
      path: z.string().min(1).nullable().default(null),
      /** `./file.ts#name`: makes that folder from nothing, on request. */
      warmUp: z.string().min(1).nullable().default(null),
      history: z.enum(['template', 'loop', 'as-sampled']).default('loop'),
      /** Variables for every rendering of the chat template, such as `{ enable_thinking: false }`. */
      templateArguments: z.record(z.string().min(1), z.json()).default({}),
      /** Prompts of more bytes are refused before they are encoded; `null`: 16 for each token of context. */
      maxPromptBytes: z.int().min(1).nullable().default(null),
    })
    .prefault({}),
  /** Models that are not trained, by the name that agents ask for. */
  models: z.record(z.string().min(1), FrozenModelSettings).default({}),
  engine: z
    .strictObject({
      /** `null` takes as many as the machine runs at once, at most 8. Bits do not depend on it. */
      threads: z.int().min(1).nullable().default(null),
      simd: z.enum(['auto', 'plain', 'relaxed']).default('auto'),
    })
    .prefault({}),
  data: z
    .strictObject({
      trainFiles: z.array(z.string().min(1)).default([]),
      testFiles: z.array(z.string().min(1)).default([]),
      promptKey: z.string().min(1).default('prompt'),
    })
    .prefault({}),
  reward: z
    .strictObject({
      path: z.string().min(1).nullable().default(null),
      name: z.string().min(1).nullable().default(null),
      timeoutMs: z.int().min(1).default(30_000),
      memoryMb: z.int().min(16).default(256),
      /** What a positional reward gets as `solutionStr`: the final assistant text, or everything after the task, tool text included. */
      input: z.enum(['answer', 'full-response']).default('answer'),
      unfinished: UnfinishedReward,
    })
    .prefault({}),
  agent: AgentSettings.prefault({}),
  toolAnswers: ToolAnswerSettings.prefault({}),
  training: TrainingSettings.prefault({}),
  sampling: SamplingSettings.prefault({}),
  limits: LimitSettings.extend({
    /** Wall time of one attempt of a rollout, in milliseconds. */
    timeoutMs: z.int().min(1).nullable().default(defaultAttemptMs),
  }).prefault({}),
  evaluation: EvaluationSettings.prefault({}),
  /** Where the numbers of steps and evaluations go as they come, beside the run's own files: `tensorboard` writes event files. */
  logging: z
    .array(
      z.enum(['tensorboard'], {
        error: 'must be tensorboard, whose event files other services read; steps and evaluations are in events.jsonl too',
      }),
    )
    .default([]),
  /** With `experimentName` the folder of TensorBoard's files: `tensorboard_log/<project>/<experiment>` in the run; `aworld-train` by default. */
  projectName: z.string().min(1).nullable().default(null),
  /** Name of the run, where the command gives none; that of the agent by default. */
  experimentName: z.string().min(1).nullable().default(null),
  gateway: z
    .strictObject({
      ...CallSettings.shape,
      /** Port of the gateway of a training, whose `/metrics` Prometheus can read; 0 takes any free one. */
      port: z.int().min(0).max(65_535).default(0),
      /** Where it listens, and so does what workers connect to. Beyond loopback it needs `tls`, or `insecure: true` where the network is trusted. */
      host: z.string().min(1).default('127.0.0.1'),
      tls: TlsFiles.nullable().default(null),
      insecure: z.boolean().default(false),
      /** The address in the URLs of agents, where it differs from the one that the gateway listens on, such as the name in the certificate. Workers connect to the same host. */
      publicUrl: PublicUrl.nullable().default(null),
    })
    .prefault({}),
  /** Where agents run. */
  executor: ExecutorSettings.prefault({}),
  /** Rollouts at once. */
  concurrency: z.int().min(1).default(32),
  seed: z.int().min(0).default(1),
})
export type LocalConfig = z.infer<typeof LocalConfig>
