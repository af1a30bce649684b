import type { Environment, Reward, RunEvent } from '@aworld-train/core'
import { type PreflightPlan, preflight } from '../preflight/preflight.ts'

/** The parts that rollouts need beside a policy. */
export interface RolloutParts {
  readonly environment: Environment
  /** `null` if nothing is scored on this side. */
  readonly reward: Reward | null
}

/** Plan of the parts. */
export interface RolloutPartsPlan {
  createEnvironment(): Environment
  createReward(): Promise<Reward | null>
}

/** Opens the parts; `stack` closes them. */
export async function openRolloutParts(stack: AsyncDisposableStack, plan: RolloutPartsPlan): Promise<RolloutParts> {
  const environment = stack.adopt(plan.createEnvironment(), (each) => each.close())
  const reward = stack.adopt(await plan.createReward(), (each) => each?.close())
  return { environment, reward }
}

export interface TriedPartsOptions {
  readonly signal: AbortSignal
  readonly onEvent?: ((event: RunEvent) => void) | undefined
}

/** Opens the parts and tries each once, so that a run with a broken part ends before it begins. */
export async function openTriedParts(
  stack: AsyncDisposableStack,
  plan: RolloutPartsPlan & PreflightPlan,
  { signal, onEvent }: TriedPartsOptions,
): Promise<RolloutParts> {
  const parts = await openRolloutParts(stack, plan)
  const onWait = (message: string) => onEvent?.({ type: 'warning-raised', at: Date.now(), code: 'PREFLIGHT_WAITS', message })
  await preflight(parts, plan, { signal, onWait })
  return parts
}
