import type { LocalPlan } from './plan.ts'
import type { Stage } from './stage.ts'

/** The description of a run in its first event. */
export function describeRun(plan: LocalPlan, stage: Stage): Record<string, unknown> {
  const trainable = plan.program.agents.filter((agent) => agent.trainable).map(({ name }) => name)
  return {
    ...stage.policy.details,
    gateway: stage.gateway.url,
    agent: trainable.join(', '),
    tasks: `${plan.train.tasks.length} to train, ${plan.validation?.tasks.length ?? 0} to choose, ${plan.test?.tasks.length ?? 0} held out`,
    seed: plan.seed,
  }
}
