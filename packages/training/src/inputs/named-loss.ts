import { type PolicyLoss, TrainError } from '@aworld-train/core'
import { loadExport } from './load-export.ts'

/** A warning where a loss is not made for as many passes over a batch as there are. */
export function passWarnings(loss: PolicyLoss | null, passes: number): string[] {
  const most = loss?.mostPasses ?? passes
  return passes <= most
    ? []
    : [`training.passes is ${passes}, and the loss is made for ${most}: the policy may collapse. Set training.passes to ${most}.`]
}

/** The loss that `training.loss` is or names; `null` for the one in the box. Throws what loading throws. */
export async function findLoss(loss: PolicyLoss | string | null, directory: string): Promise<PolicyLoss | null> {
  if (typeof loss !== 'string') return loss
  const found = await loadExport(loss, directory)
  if (typeof found === 'function') return found as PolicyLoss
  throw new TrainError('MODULE_INVALID', `The loss ${loss} is not a function; export one that takes rows and returns a loss for each.`)
}
