export { decideRetry, type RetryInput } from './retry-decision.ts'
export { decideReward, type RewardDecision, type ScoreUnfinished } from './reward-decision.ts'
export type { InProcessRolloutRunner, RolloutCounts, RolloutRunnerOptions } from './rollout-options.ts'
export { createRolloutRunner } from './rollout-runner.ts'
export type { EventEntry, EventQuery, LoggedEvent } from './service/event-log.ts'
export { createRolloutClient, type RolloutClient, type RolloutClientOptions } from './service/rollout-client.ts'
export {
  createRolloutServer,
  defaultRolloutServerLimits,
  type RolloutServer,
  type RolloutServerLimits,
  type RolloutServerOptions,
} from './service/rollout-server.ts'
export {
  createRolloutService,
  defaultServiceLimits,
  type RolloutService,
  type RolloutServiceCounts,
  type RolloutServiceLimits,
  type RolloutServiceOptions,
} from './service/rollout-service.ts'
