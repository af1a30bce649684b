export { type AttemptExecutorOptions, createAttemptExecutor } from './attempt-executor.ts'
export { createChannelAnswers } from './channel/channel-answers.ts'
export { createChannelEngine } from './channel/channel-engine.ts'
export { defaultChannelLimits } from './channel/channel-limits.ts'
export { createChannelServer } from './channel/channel-server.ts'
export type {
  ChannelAnswers,
  ChannelCounts,
  ChannelEngine,
  ChannelEngineOptions,
  ChannelOutcome,
  ChannelServer,
  ChannelServerLimits,
  ChannelServerOptions,
  ChannelWarning,
  EngineConnection,
  EngineLink,
  RowTask,
  ToTask,
} from './channel/channel-types.ts'
export { decideRetry, type RetryInput } from './retry-decision.ts'
export { decideReward, type RewardDecision, type ScoreUnfinished } from './reward-decision.ts'
export type { InProcessRolloutRunner, RolloutCounts, RolloutRunnerOptions, RunningAttempt } from './rollout-options.ts'
export { createRolloutRunner } from './rollout-runner.ts'
export type { RolloutWorkers, WorkerGreeting, WorkerLink, WorkerSource } from './rollout-workers.ts'
export { runInSlots } from './run-in-slots.ts'
export type { EventEntry, EventQuery, FeedEvent } from './service/event-feed.ts'
export { createRolloutClient, type RolloutClient, type RolloutClientOptions } from './service/rollout-client.ts'
export { createRolloutServer, type RolloutServer, type RolloutServerOptions } from './service/rollout-server.ts'
export { defaultRolloutServerLimits, type RolloutServerLimits } from './service/rollout-server-limits.ts'
export {
  createRolloutService,
  defaultServiceLimits,
  type RolloutService,
  type RolloutServiceCounts,
  type RolloutServiceLimits,
  type RolloutServiceOptions,
} from './service/rollout-service.ts'
export type { AgentIdentity } from './workers/agent-identity.ts'
export { runWorker, type WorkerOptions } from './workers/run-worker.ts'
export { registerWorkerMetrics } from './workers/worker-metrics.ts'
export { createWorkerPool, type WorkerPool, type WorkerPoolOptions } from './workers/worker-pool.ts'
export { defaultWorkerPoolLimits, type WorkerPoolLimits } from './workers/worker-pool-limits.ts'
export { createWorkerServer, type WorkerServer, type WorkerServerOptions } from './workers/worker-server.ts'
