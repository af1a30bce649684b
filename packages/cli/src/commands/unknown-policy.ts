import { didYouMean, TrainError } from '@aworld-train/core'

/** The error for a `--policy` that is not among those of, say, the checkpoints of a run. */
export function unknownPolicy(owner: string, policy: string, policies: readonly string[], note = ''): TrainError {
  const names = policies.map((name) => `"${name}"`).join(', ')
  const message = `No ${owner} has the policy "${policy}"; there are ${names}.${didYouMean(policy, policies)} Correct --policy.${note}`
  return new TrainError('CONFIG_INVALID', message)
}
