export type { RemoteChatEngine } from './engine/chat-engine.ts'
export type { ChatEngineOptions, FleetSource, TokenEngineOptions } from './engine/options.ts'
export type { RemoteTokenEngine } from './engine/token-engine.ts'
export { fleetHealth } from './fleet/fleet-health.ts'
export { defaultFleetLimits, type FleetLimits } from './fleet/fleet-limits.ts'
export type { Fleet, FleetCounts, FleetEvent, FleetOptions, ReplicaState } from './fleet/fleet-types.ts'
export type { InFlightMode } from './fleet/server-kind.ts'
export { type ModelServerFacts, type ModelServerName, probeModelServer } from './probe-model-server.ts'
export { createSglangChatEngine, createSglangFleet, createSglangTokenEngine } from './sglang/sglang-engines.ts'
export { readAnswer as readSglangAnswer } from './sglang/sglang-reader.ts'
export { createVllmChatEngine, createVllmFleet, createVllmTokenEngine, type VllmTokenEngineOptions } from './vllm/vllm-engines.ts'
export type { VllmKindOptions } from './vllm/vllm-kind.ts'
export { readAnswer as readVllmAnswer } from './vllm/vllm-reader.ts'
export type { CheckOptions } from './weights/check-weights.ts'
export type { Publication } from './weights/publications.ts'
export {
  createWeightUpdater,
  type PublishReport,
  type WeightUpdater,
  type WeightUpdaterOptions,
} from './weights/weight-updater.ts'
