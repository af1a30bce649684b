import { createTokenReport } from '@aworld-train/core'
import type { Episode, RunReport, TokenReport } from '@aworld-train/protocol'
import type { LocalPlan } from './plan.ts'
import { displayPath } from './run-files.ts'
import type { Stage } from './stage.ts'

/** What a run says of itself when it starts. */
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

export interface CallSummary {
  readonly calls: Pick<RunReport['counts'], 'modelCalls' | 'toolCalls'>
  readonly tokenReport: TokenReport
}

/** The parts of a stage that count. */
export type CallCounters = Pick<Stage, 'gateway' | 'environment' | 'runner' | 'engineCalls'>

/** Calls as each side of a wire counted them in this process, and what clients did to them; `since` is when it began, in Unix milliseconds. */
export async function summarizeCalls(stage: CallCounters, episodes: Iterable<Episode>, since: number): Promise<CallSummary> {
  const environment = await stage.environment.counts()
  const gateway = stage.gateway.counts()
  const report = createTokenReport()
  let asked = 0
  for (const { messages, trajectories, timing } of episodes) {
    if (timing.startedAt < since) continue
    for (const { role } of messages) if (role === 'assistant') asked += 1
    report.add(trajectories)
  }
  return {
    calls: {
      modelCalls: { agent: asked, gateway: gateway.calls, engine: stage.engineCalls() },
      toolCalls: { agent: stage.runner.counts().toolCalls, environment: environment.toolCalls, servers: environment.serverToolCalls },
    },
    tokenReport: report.finish(gateway),
  }
}
