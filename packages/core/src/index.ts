export { type AdvantageKind, type GroupAdvantages, groupAdvantages } from './advantage/advantages.ts'
export { type AttemptStates, type AttemptStatesOptions, createAttemptStates } from './attempt/attempt-states.ts'
export { orAborted } from './attempt/or-aborted.ts'
export { runAll } from './attempt/run-all.ts'
export { filesByName, readTaskFile, toAgentTask } from './attempt/task-files.ts'
export { ToolError } from './attempt/tool-error.ts'
export { withDeadline } from './attempt/with-deadline.ts'
export type * from './contracts/index.ts'
export { type AgentTokenCounts, createAgentTokens } from './ledger/agent-tokens.ts'
export { addCount, mergeCounts, type TokenCounts, totalCount } from './ledger/token-counts.ts'
export { createLedger, type LedgerAccumulator } from './ledger/token-ledger.ts'
export { checkRows, checkUpdate } from './loss/check-update.ts'
export { lossWeights, maskedTokens, trainedLength, trainedPositions } from './loss/loss-weights.ts'
export { cispo, drGrpo, gspo } from './loss/losses.ts'
export { aggregateLoss, type ClipRange, isClipped, k3Divergence, ppoClipGradient, ppoClipLoss } from './loss/policy-loss.ts'
export { hasOwnLoss, meansByName, updateWithLoss } from './loss/update-with-loss.ts'
export { type DescribeModelOptions, describeModel } from './model/describe-model.ts'
export { displayPath } from './process/display-path.ts'
export { fileBelow } from './process/file-below.ts'
export { isRunning } from './process/is-running.ts'
export { makeOwnFolder, namesOfDeadProcesses, ownName } from './process/own-folder.ts'
export { readBytes } from './process/read-bytes.ts'
export { siblingModule } from './process/sibling-module.ts'
export { type ProtobufField, protobuf, protobufFields } from './protobuf/protobuf.ts'
export {
  differenceOfMeans,
  type MeanInterval,
  meanWithInterval,
  pairedDifference,
  passAtK,
  passRates,
  wilsonInterval,
} from './statistics/statistics.ts'
export { isRecord } from './text/is-record.ts'
export { createEventReader, type EventReader, type ServerEvent } from './text/read-events.ts'
export { spliceMembers } from './text/splice-members.ts'
export { stableHash, stableStringify, taskHash } from './text/stable-hash.ts'
export { didYouMean, suggest } from './text/suggest.ts'
export { preciseNow } from './time/precise-now.ts'
export { retryAfterMs } from './time/retry-after.ts'
export { toBranches } from './trajectory/branches.ts'
export { countFailures, describeFailure, type EndedRollout, isFailed, isUnscored, toEndedRollout } from './trajectory/failures.ts'
export { GrowingTokens } from './trajectory/growing-tokens.ts'
export { isInfrastructureFailure } from './trajectory/infrastructure-failure.ts'
export { messageModels } from './trajectory/message-models.ts'
export { plainTrajectory } from './trajectory/plain-trajectory.ts'
export { type TrainerRow, type TrainerRowAssembly, type TrainerRowOptions, toTrainerRows } from './trajectory/to-trainer-rows.ts'
export {
  type BranchCandidate,
  type SampleAssembly,
  type TrainingSampleOptions,
  toTrainingSamples,
  type UntrainedTurns,
} from './trajectory/to-training-samples.ts'
export { createTokenReport, type TokenReportBuilder, tokenReport } from './trajectory/token-report.ts'
export { causedByPolicy, type UntrainedEpisodeOptions, untrainedEpisode } from './trajectory/untrained-episode.ts'
export { createFairQueue, type FairQueue } from './waiting/fair-queue.ts'
export { createSharedAborts, type SharedAborts } from './waiting/shared-aborts.ts'
export { createSlots, type Slots } from './waiting/slots.ts'
export { createWaitingLine, type WaitingLine } from './waiting/waiting-line.ts'
