import type { PlannedPolicy } from '../local/plan.ts'
import type { Policy } from './policy.ts'
import { createPolicySet, type PolicyOfSet } from './policy-set.ts'

type Planned = Pick<PlannedPolicy, 'name' | 'trainable' | 'rateFactor' | 'chosen'>

/** Opens the policies of a plan over the folders of their models, as one policy. If one fails to open, the others are closed. */
export async function openPolicies(
  planned: readonly [Planned, ...Planned[]],
  models: readonly string[],
  signal: AbortSignal,
): Promise<Policy> {
  const [single] = planned
  if (single.name === null) return await single.chosen.open(models[0]!, signal)
  await using stack = new AsyncDisposableStack()
  const members: PolicyOfSet[] = []
  for (const [index, { name, trainable, rateFactor, chosen }] of planned.entries()) {
    const policy = stack.adopt(await chosen.open(models[index]!, signal), (each) => each.close())
    members.push({ ...policy, name: name!, trainable, rateFactor })
  }
  const set = createPolicySet(members as [PolicyOfSet, ...PolicyOfSet[]])
  stack.move()
  return set
}
