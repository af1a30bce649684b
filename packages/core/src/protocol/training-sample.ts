import { z } from 'zod'
import { Logprobs, LossMask, TokenIds, WeightVersionSpan } from './tokens.ts'

/**
 * One branch of an episode, token by token: what a learner of ours trains on and what `export` writes. A trainer client gets
 * the same branch over the channel as a `TrainerRow`. All arrays have the length of `tokenIds`; `rolloutLogprobs` is 0 where the
 * policy did not sample. `advantage: null` is "not computed here", `0` is "no gradient".
 */
export const TrainingSample = z.strictObject({
  version: z.literal(2),
  tokenIds: TokenIds,
  lossMask: LossMask,
  rolloutLogprobs: Logprobs,
  /** Spans over `tokenIds`, not over one completion. */
  weightVersions: z.array(WeightVersionSpan),
  reward: z.number(),
  advantage: z.number().nullable(),
  group: z.string(),
  agent: z.string(),
  /** Id of the invocation that sampled it. */
  trajectory: z.string(),
  policy: z.string(),
  provenance: z.strictObject({
    rollout: z.string(),
    attempt: z.int().min(0),
    taskId: z.string(),
    sample: z.int().min(0),
    /** Turn indices of the branch, from the root on. */
    turns: z.array(z.int().min(0)),
  }),
})
export type TrainingSample = z.infer<typeof TrainingSample>
