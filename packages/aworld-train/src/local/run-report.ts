import { describeAgents } from '@aworld-train/training'
import type { LocalPlan } from './plan.ts'
import type { Stage } from './stage.ts'

/** The policy that each agent of a plan with several asks for. */
export const policyOfAgent = ({ program, policies }: Pick<LocalPlan, 'program' | 'policies'>): Record<string, string> =>
  Object.fromEntries(
    program.agents.flatMap(({ name, model }) => (policies.some((policy) => policy.name === model) ? [[name, model as string]] : [])),
  )

/** The description of a run in its first event. */
export function describeRun(plan: LocalPlan, stage: Stage): Record<string, unknown> {
  return {
    ...stage.policy.details,
    gateway: stage.gateway.url,
    agent: describeAgents(plan.program.agents, null),
    tasks: `${plan.train.tasks.length} to train, ${plan.validation?.tasks.length ?? 0} to choose, ${plan.test?.tasks.length ?? 0} held out`,
    seed: plan.seed,
  }
}
