import { defaultAttemptMs, type PolicyLoss, Sampling } from '@aworld-train/core'
import { z } from 'zod'
import { CallSettings } from './call-settings.ts'
import { ExecutorSettings } from './executor-settings.ts'
import { FrozenModelSettings } from './frozen-model.ts'
import { longestMs, Port, PublicUrl, TlsFiles } from './listener.ts'
import { PolicyModel, PolicySettings } from './policy-settings.ts'

const fraction = z.number().min(0).max(1)

/** How many draws of a step come from each kind. */
export const Stratify = z.strictObject({
  key: z.string().min(1).describe('Column of the rows whose value is the kind of a task.'),
  counts: z
    .record(z.string(), z.int().min(0))
    .describe('Prompts of each kind in every step, such as `{ easy: 12, hard: 4 }`. They add up to `training.promptsPerStep`.'),
})
export type Stratify = z.infer<typeof Stratify>

/** How rewards of a group become advantages. The formulas and their sources are in core's `advantages`. */
export const AdvantageEstimator = z.enum(['group-relative', 'group-relative-unscaled', 'leave-one-out', 'none'])

/** Settings of a training and its steps. */
export const TrainingSettings = z.strictObject({
  steps: z.int().min(1).nullable().default(null).describe('Steps of the whole training. `null` takes as many as `training.epochs` needs.'),
  epochs: z.int().min(1).default(1).describe('Passes over the training tasks. `training.steps` stands over it.'),
  promptsPerStep: z
    .int()
    .min(1)
    .default(16)
    .describe('Tasks that one step draws. Each becomes a group of `training.samplesPerPrompt` rollouts.'),
  samplesPerPrompt: z
    .int()
    .min(1)
    .default(8)
    .describe(
      'Rollouts of each task in a step. More of them estimate the advantages better and take longer. With 1, `training.advantage` must be `none`.',
    ),
  firstSamples: z
    .int()
    .min(2)
    .nullable()
    .default(null)
    .describe(
      'Rollouts of each task that start first, fewer than `training.samplesPerPrompt`. Where all of them are solved, the rest do not start. `null` starts all at once.',
    ),
  teachingPrompts: z
    .int()
    .min(1)
    .nullable()
    .default(null)
    .describe(
      'Groups with unequal rewards that a step waits for. It draws further tasks in place of the other groups, up to `training.maxPrompts`. `null` trains the tasks that the step drew first.',
    ),
  maxPrompts: z
    .int()
    .min(1)
    .nullable()
    .default(null)
    .describe('Tasks that one step may draw while it waits for `training.teachingPrompts`. `null` allows twice `training.promptsPerStep`.'),
  solvedReward: z
    .number()
    .default(1)
    .describe(
      'Least reward of a rollout that counts as solved for `training.firstSamples`; with `training.ownReward`, of each of its agents.',
    ),
  maxStaleness: z
    .int()
    .min(0)
    .default(0)
    .describe(
      'Steps that groups may start ahead of the step that trains. The oldest groups that are ready train next, and none is dropped for its age. 0 samples every step with the weights of the step before.',
    ),
  hardStaleness: z
    .boolean()
    .default(false)
    .describe('`true` makes a step wait for a group that is `training.maxStaleness` steps old, so that no group trains later than that.'),
  stratify: Stratify.nullable().default(null).describe('How many tasks of each kind a step draws. `null` draws from all tasks alike.'),
  passes: z.int().min(1).default(1).describe('Times that the updates of a step go over its batch.'),
  promptsPerUpdate: z
    .int()
    .min(1)
    .nullable()
    .default(null)
    .describe('Groups in one optimizer update, so that a step makes several updates. `null` makes one update of all groups of the step.'),
  advantage: AdvantageEstimator.default('group-relative').describe(
    "How the rewards of a group become advantages: `group-relative` is the difference from the group's mean over its deviation (GRPO), `group-relative-unscaled` the difference alone (Dr. GRPO), `leave-one-out` the difference from the mean of the others (RLOO), `none` the reward itself. An agent is compared with itself alone, over the rollouts that it has a part in.",
  ),
  ownReward: fraction
    .default(0)
    .describe(
      "Share of an agent's own reward in what it is trained on, from 0 to 1: (1 - ownReward) times the reward of the rollout, plus ownReward times the value that the reward function returned for that agent in `agents`. An agent without such a value has the reward of the rollout.",
    ),
  dropZeroVariance: z
    .boolean()
    .default(true)
    .describe(
      '`true` leaves out what an agent did in a group where all its rewards are equal, since it has no gradient. `false` keeps it in the average of the loss, with advantage 0.',
    ),
  incompleteEpisodes: z
    .enum(['train', 'exclude'])
    .default('train')
    .describe(
      'Episodes that ended at a limit of turns, tool calls, tokens or context: `train` trains them with the reward that they got, `exclude` leaves them out.',
    ),
  maxSampleTokens: z
    .int()
    .min(2)
    .nullable()
    .default(null)
    .describe('Longest conversation that is trained, in tokens with its prompt. A longer one is left out whole. `null` sets no limit.'),
  clipLow: z
    .number()
    .min(0)
    .max(1)
    .default(0.2)
    .describe('How far below 1 the ratio of new to old probability may fall before the loss of a token is clipped (PPO).'),
  clipHigh: z
    .number()
    .min(0)
    .default(0.28)
    .describe('How far above 1 that ratio may rise before the loss of a token is clipped. A higher value leaves rare tokens more room.'),
  klCoefficient: z
    .number()
    .min(0)
    .default(0)
    .describe(
      'Weight of the KL divergence from the starting model in the loss. A higher value holds the policy closer to it. 0 leaves the term out, and no reference model is kept.',
    ),
  entropyCoefficient: z
    .number()
    .default(0)
    .describe(
      'Weight of the entropy in the loss. A positive value rewards a wider distribution, and with it more exploration. 0 leaves the term out.',
    ),
  aggregation: z
    .enum(['token-mean', 'sequence-mean'])
    .default('token-mean')
    .describe(
      'How the losses of tokens are averaged: over all tokens of an update (`token-mean`), or within each conversation first (`sequence-mean`), so that long ones weigh no more than short ones.',
    ),
  loss: z
    .union([
      z.string().min(1),
      z.custom<PolicyLoss>((value) => typeof value === 'function', 'must be a path such as ./loss.ts#name, or a function'),
    ])
    .nullable()
    .default(null)
    .describe(
      'Loss of your own in place of the clipped one: `./loss.ts#name`, or a function in code. It costs one forward pass more in each update. `training.clipLow` and `training.clipHigh` have no effect on it; the terms of `training.klCoefficient` and `training.entropyCoefficient` are added to it, and `training.aggregation` weighs it. `null` takes the clipped loss.',
    ),
  learningRate: z
    .number()
    .min(0)
    .default(1e-3)
    .describe('Highest learning rate of the optimizer (AdamW). It holds for every update of a step.'),
  warmupSteps: z
    .int()
    .min(0)
    .default(5)
    .describe('Steps in which the learning rate rises from 0 to its value. `model.warmUp` is something else: it makes a starting model.'),
  warmupFraction: fraction
    .nullable()
    .default(null)
    .describe('The same as a part of all steps, from 0 to 1. `null` takes `training.warmupSteps`.'),
  finalLearningRateFraction: fraction
    .default(0.2)
    .describe('Part of the learning rate that is left at the last step, to which it falls linearly. 1 keeps it constant.'),
  weightDecay: z
    .number()
    .min(0)
    .default(0.01)
    .describe('Weight decay of AdamW. It pulls weights towards 0 by the learning rate times this value.'),
  betas: z
    .tuple([fraction, fraction])
    .default([0.9, 0.98])
    .describe('Decay of the two moving averages of AdamW: of the gradient, and of its square.'),
  epsilon: z.number().gt(0).default(1e-8).describe('Term that keeps the division of AdamW away from 0.'),
  maxGradNorm: z.number().min(0).default(1).describe('Norm that a longer gradient is scaled down to. 0 scales none.'),
  checkpointEvery: z
    .int()
    .min(1)
    .nullable()
    .default(10)
    .describe(
      'Steps between two checkpoints. A killed training goes on from the newest. The last step always has one; with `null` no other step does.',
    ),
  evaluateEvery: z
    .int()
    .min(1)
    .nullable()
    .default(null)
    .describe('Steps between two evaluations on the validation tasks. `null` makes none. The best checkpoint is chosen by them.'),
  logprobCheck: z
    .strictObject({
      tokens: z
        .int()
        .min(0)
        .default(64)
        .describe('Tokens of each step whose logprobs are computed again before the update. 0 turns the check off.'),
      tolerance: z
        .number()
        .gt(0)
        .default(1e-4)
        .describe(
          'How far such a logprob may be from the sampled one, in nats. A larger difference ends the run with `POLICY_LOGPROB_MISMATCH`.',
        ),
    })
    .prefault({}),
})
export type TrainingSettings = z.infer<typeof TrainingSettings>

/** How tokens are drawn; training and evaluation have their own values. */
const { temperature, topP, topK, maxTokens } = Sampling.shape

export const SamplingSettings = z.strictObject({ temperature, topP, topK, maxTokens: maxTokens.default(512) })
export type SamplingSettings = z.infer<typeof SamplingSettings>

/** What is kept of the workspace of a rollout. */
export const CollectSettings = z
  .array(
    z
      .string()
      .min(1)
      .max(512)
      .regex(/^(?!\/|\.\.(?:\/|$))(?!.*\/\.\.(?:\/|$))/, 'must be a path below the workspace, such as out/**'),
  )
  .max(64)
  .default([])
  .describe(
    'Files that are read when the workspace of a rollout closes, as globs below it, such as `out/**`. The reward gets them as `files`, and the run keeps them. A rollout that leaves links, more than 64 files or more than 20 MB there has none of them.',
  )

const EnvironmentSettings = z.strictObject({ collect: CollectSettings })

export const LimitSettings = z.strictObject({
  maxTurns: z
    .int()
    .min(1)
    .nullable()
    .default(null)
    .describe('Turns of the policy in one rollout; a turn is a model call with its tool results. `null` sets no limit.'),
  maxTokens: z
    .int()
    .min(1)
    .nullable()
    .default(null)
    .describe('Tokens that the policy may sample in one rollout, over all its turns. `null` sets no limit.'),
  maxToolCalls: z.int().min(0).nullable().default(null).describe('Tool calls of one rollout. `null` sets no limit.'),
  timeoutMs: z
    .int()
    .min(1)
    .nullable()
    .default(null)
    .describe('Wall time of one attempt of a rollout, in milliseconds. A longer attempt ends there. `null` takes `rolloutTimeoutMs`.'),
  maxCost: z
    .number()
    .min(0)
    .nullable()
    .default(null)
    .describe('US dollars that calls to `models` may cost in one rollout. `null` sets no limit.'),
  maxFrozenTokens: z
    .int()
    .min(0)
    .nullable()
    .default(null)
    .describe('Prompt and completion tokens that calls to `models` may use in one rollout. `null` sets no limit.'),
})

export const EvaluationSettings = z.strictObject({
  temperature,
  topP,
  topK,
  samplesPerPrompt: z.int().min(1).default(1).describe('Rollouts of each task in an evaluation. Its result is the mean over all of them.'),
  before: z.boolean().default(true).describe('Whether the test tasks are evaluated before the first step.'),
  greedy: z.boolean().default(true).describe('Whether the test tasks are evaluated with temperature 0 as well.'),
  kindKey: z
    .string()
    .nullable()
    .default(null)
    .describe('Column of the rows by which the result is split. `null` splits it by the data source.'),
})
export type EvaluationSettings = z.infer<typeof EvaluationSettings>

/** Agents' use of their policy. */
export const AgentSettings = z.strictObject({
  malformedCalls: z
    .enum(['answer', 'tool-error'])
    .default('tool-error')
    .describe(
      'Tool calls that cannot be read: `tool-error` tells an `Agent` so, and it goes on; with `answer` the text is its answer. Other agents get the text.',
    ),
})

/** How large answers of tools are shortened for the policy. */
export const ToolAnswerSettings = z.strictObject({
  maxTokens: z
    .int()
    .min(1)
    .nullable()
    .default(null)
    .describe(
      "Tokens of one tool's answer that the policy reads. A longer answer is cut for the policy; the episode keeps all of it. `null` cuts none.",
    ),
  cut: z.enum(['head', 'tail', 'middle']).default('middle').describe('Part of a longer answer that is left out.'),
})

/** Reward of an episode that ended at a limit of turns, tool calls, tokens, cost or context. */
export const UnfinishedReward = z
  .enum(['zero', 'score', 'exclude'])
  .default('zero')
  .describe(
    'What an episode gets that ended at a limit of turns, tool calls, tokens, cost or context: 0 (`zero`), what the reward makes of it (`score`), or nothing (`exclude`: untrained, and in no mean).',
  )

/** Configuration of a run of the engine in the box. Every field has a default. */
export const LocalConfig = z.strictObject({
  model: PolicyModel.prefault({}).describe('The policy: the model that is trained.'),
  policies: z
    .record(
      z
        .string()
        .regex(/^[a-z\d][\w.-]{0,127}$/i, 'must be letters, digits, ".", "_" and "-", since its checkpoints are in a folder of that name'),
      PolicySettings,
    )
    .default({})
    .describe('Several policies in place of `model`, by the name that agents ask for in `llmModelName`.'),
  models: z
    .record(z.string().min(1), FrozenModelSettings)
    .default({})
    .describe('Models that are not trained, by the name that agents ask for.'),
  engine: z
    .strictObject({
      threads: z
        .int()
        .min(1)
        .nullable()
        .default(null)
        .describe(
          'Threads that compute. Results do not depend on it. `null` takes as many as the machine runs at once, at most 8. Several policies share them out, and each takes one at least.',
        ),
      simd: z
        .enum(['auto', 'plain', 'relaxed'])
        .default('auto')
        .describe(
          'Kernels that compute: `plain` gives the same bits on every machine, `relaxed` is faster where the processor has it, and `auto` takes `relaxed` where it runs.',
        ),
    })
    .prefault({})
    .describe('The engine in the box, which samples and trains in this process.'),
  data: z
    .strictObject({
      trainFiles: z
        .array(z.string().min(1))
        .default([])
        .describe('Files of training tasks. Leave them out where your program passes `trainDataset`.'),
      testFiles: z
        .array(z.string().min(1))
        .default([])
        .describe('Files of test tasks, which are evaluated and never trained. Leave them out where your program passes `testDataset`.'),
      promptKey: z
        .string()
        .min(1)
        .default('prompt')
        .describe('Column of the rows that holds the task for the agent. `prompt` also finds its other names, such as `question`.'),
    })
    .prefault({})
    .describe('The tasks.'),
  reward: z
    .strictObject({
      path: z
        .string()
        .min(1)
        .nullable()
        .default(null)
        .describe('File of the reward function, in TypeScript or Python. Leave it out where your program passes `rewardFunc`.'),
      name: z
        .string()
        .min(1)
        .nullable()
        .default(null)
        .describe(
          'Name of the function in that file. `null` takes the default export, the function that is named as the file, `compute_score` in Python, or the only one.',
        ),
      timeoutMs: z
        .int()
        .min(1)
        .max(longestMs)
        .default(30_000)
        .describe('Time that one call of the reward may take, in milliseconds. A longer call fails with `REWARD_TIMEOUT`.'),
      memoryMb: z
        .int()
        .min(16)
        .default(256)
        .describe(
          'Memory that the reward may take, in megabytes; in Python, beside what its imports take. A reward that takes more fails.',
        ),
      concurrency: z
        .int()
        .min(1)
        .nullable()
        .default(null)
        .describe(
          'Calls of the reward at once, in the one worker or process that a reward named by path has. `null` takes 8 if the configuration has `models`. Without them a module of TypeScript has one call, a function of Python 8, or 32 if it is asynchronous, and `rewardFunc` of your program any number.',
        ),
      maxCost: z
        .number()
        .min(0)
        .nullable()
        .default(null)
        .describe(
          'US dollars that one scoring may spend on `models`; for a reward that sees a group, one group. A scoring that would spend more fails. `null` sets no limit. It is apart from `limits.maxCost`.',
        ),
      input: z
        .enum(['answer', 'full-response'])
        .default('answer')
        .describe(
          'What a reward with positional parameters gets as `solutionStr`: the final text of the assistant (`answer`), or everything after the task, text of tools included (`full-response`).',
        ),
      unfinished: UnfinishedReward,
    })
    .prefault({})
    .describe('The score of an episode.'),
  agent: AgentSettings.prefault({}).describe('What an agent makes of the answers of its policy.'),
  environment: EnvironmentSettings.prefault({}).describe('The tools of a rollout, and what is kept of its workspace.'),
  toolAnswers: ToolAnswerSettings.prefault({}).describe('What the policy reads of long answers of tools.'),
  training: TrainingSettings.prefault({}).describe('What one training step is made of.'),
  sampling: SamplingSettings.prefault({}).describe('How training rollouts are sampled.'),
  limits: LimitSettings.extend({
    timeoutMs: z
      .int()
      .min(1)
      .nullable()
      .default(defaultAttemptMs)
      .describe(
        `Wall time of one attempt of a rollout, in milliseconds. A longer attempt ends there. \`null\` allows ${defaultAttemptMs}.`,
      ),
  })
    .prefault({})
    .describe('What one rollout may take. An episode that reaches a limit ends there, and `reward.unfinished` says what it is worth.'),
  evaluation: EvaluationSettings.prefault({}).describe('How test tasks are evaluated.'),
  logging: z
    .array(
      z.enum(['tensorboard'], {
        error: 'must be tensorboard, whose event files other services read; steps and evaluations are in events.jsonl too',
      }),
    )
    .default([])
    .describe('Where the numbers of steps and evaluations go as they come, beside the files of the run: `tensorboard` writes event files.'),
  projectName: z
    .string()
    .min(1)
    .nullable()
    .default(null)
    .describe('First part of the folder for TensorBoard, `tensorboard_log/PROJECT/EXPERIMENT` in the run. `null` takes `aworld-train`.'),
  experimentName: z
    .string()
    .min(1)
    .nullable()
    .default(null)
    .describe('Second part of that folder, and the name of the run where the command gives none. `null` takes the name of the agent.'),
  gateway: z
    .strictObject({
      ...CallSettings.shape,
      port: Port.default(0).describe('Port of the gateway, whose `/metrics` Prometheus can read. 0 takes any free one.'),
      host: z
        .string()
        .min(1)
        .default('127.0.0.1')
        .describe(
          'Address that the gateway and the port of the workers listen on. Beyond loopback it needs `gateway.tls`, or `gateway.insecure` on a network that you trust.',
        ),
      tls: TlsFiles.nullable().default(null).describe('Certificate of the gateway, for HTTPS. `null` speaks plain HTTP.'),
      insecure: z.boolean().default(false).describe('`true` allows plain HTTP beyond loopback. Set it only on a network that you trust.'),
      publicUrl: PublicUrl.nullable()
        .default(null)
        .describe(
          'Address in the URLs of agents, where it differs from the one that the gateway listens on, such as the name in the certificate. Workers connect to the same host.',
        ),
    })
    .prefault({})
    .describe('The gateway, which agents send their model calls to.'),
  executor: ExecutorSettings.prefault({}).describe(
    'Where agents run. Model calls, rewards and records stay in the process that has this configuration.',
  ),
  concurrency: z
    .int()
    .min(1)
    .default(32)
    .describe('Rollouts that run at once, over all workers. More of them keep the engine busy and take more memory.'),
  seed: z
    .int()
    .min(0)
    .default(1)
    .describe('Seed of the order of tasks and of every random draw. The same seed gives the same curve in `plain` kernels.'),
})
export type LocalConfig = z.infer<typeof LocalConfig>
