import { displayPath } from '@aworld-train/core'
import type { LocalPlan } from './plan.ts'
import type { Stage } from './stage.ts'

/** The description of a run in its first event. */
export function describeRun(plan: LocalPlan, stage: Stage, model: string): Record<string, unknown> {
  const { tier, engine, config } = stage.local
  const trainable = plan.program.agents.filter((agent) => agent.trainable).map(({ name }) => name)
  return {
    policy: `${displayPath(model)}: ${config.layers} layers, width ${config.hiddenSize}, vocabulary ${config.vocabularySize}, context ${engine.model.contextLength}`,
    engine: `WebAssembly, ${tier.simd} SIMD, ${tier.threads} threads`,
    gateway: stage.gateway.url,
    agent: trainable.join(', '),
    tasks: `${plan.train.tasks.length} to train, ${plan.validation?.tasks.length ?? 0} to choose, ${plan.test?.tasks.length ?? 0} held out`,
    seed: plan.seed,
  }
}
