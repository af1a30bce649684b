export {
  type AgentSideOptions,
  type KnownAnswers,
  openAgentSide,
  type ServedAgentSide,
  type ServedAgentSideOptions,
  serveAgentSide,
} from './agent-side/agent-side.ts'
export { type AgentSideCheck, checkAgentSide } from './agent-side/check-agent-side.ts'
export { checkModels, type GatewayModels, policyName } from './agent-side/check-models.ts'
export { countCalls } from './agent-side/count-calls.ts'
export { describeAgents } from './agent-side/describe-agents.ts'
export { checkRecordings, toFrozenRoutes } from './agent-side/frozen-routes.ts'
export { type Listener, openPolicyGateway, type PolicyGatewayOptions, routeSettings } from './agent-side/policy-gateway.ts'
export { readTls } from './agent-side/read-tls.ts'
export {
  openRolloutParts,
  openTriedParts,
  type RolloutParts,
  type RolloutPartsPlan,
  type TriedPartsOptions,
} from './agent-side/rollout-parts.ts'
export { openTrainingSide, type SideSettings, type TrainingSide, type TrainingSideOptions } from './agent-side/training-side.ts'
export { CallSettings, callSettingsOf } from './config/call-settings.ts'
export { describeIssue } from './config/describe-issue.ts'
export { describeIssues, fieldsOf } from './config/describe-issues.ts'
export { ExecutorSettings } from './config/executor-settings.ts'
export { FrozenModelSettings } from './config/frozen-model.ts'
export * from './config/key-tree.ts'
export { PublicUrl, TlsFiles } from './config/listener.ts'
export * from './config/local-config.ts'
export { inertNotes, isSet, lossProblems, type OwnConfig, ownKeysOf, readOwnConfig } from './config/own-config.ts'
export {
  type ConfigExtension,
  type KeyTranslator,
  type LocalConfigOptions,
  type ParsedLocalConfig,
  parseLocalConfig,
  type ReadLocalConfig,
  readLocalConfig,
  type TranslatedKeys,
} from './config/parse-local-config.ts'
export { readConfigFile } from './config/read-config-file.ts'
export { readSecret, Secret } from './config/secret.ts'
export type * from './config/setting-name.ts'
export { TrainerSettings, watchdogTimeoutMs } from './config/trainer-settings.ts'
export * from './config/trainer-source.ts'
export type * from './dataset/dataset-types.ts'
export { datasetOverlap, loadDataset, requireDataset } from './dataset/load-dataset.ts'
export { pathsOf } from './dataset/read-rows.ts'
export { type RunData, readRunData } from './dataset/read-run-data.ts'
export { kindOf, requireColumn } from './dataset/task-column.ts'
export { toChannelTask } from './dataset/to-channel-task.ts'
export { writeParquet, writeParquetRows } from './dataset/write-parquet.ts'
export { firstFailure } from './directory/first-failure.ts'
export { type HealthSources, watchHealth } from './directory/health-watch.ts'
export {
  type CallCounters,
  type CallCounts,
  type CallSummary,
  countCallsOf,
  openRunAccounts,
  type RunAccounts,
  summarizeCalls,
} from './directory/run-accounts.ts'
export { inRunDirectory, type RunDirectory, type RunDirectoryRequest } from './directory/run-directory.ts'
export { removeUnfinished, runVersions } from './directory/run-files.ts'
export { openRunSession, type RunBeginning, type RunSession, type RunSessionOptions, type TrainingResult } from './directory/run-session.ts'
export { inTriedRun, type RunRequest, type TriedRunRequest } from './directory/tried-run.ts'
export { type KeptCheckpoint, watchCollapse } from './events/collapse-watch.ts'
export { createEpisodeSampler } from './events/episode-sampler.ts'
export { createFailureTally, type EvaluationHere, type FailureTally } from './events/failure-tally.ts'
export { createIdleClock, type IdleClock } from './events/idle-clock.ts'
export { openRunLogs, type RunLogs, type RunLogsOptions } from './events/run-logs.ts'
export type { RunMetrics } from './events/run-metrics.ts'
export { watchTruncation } from './events/truncation-watch.ts'
export { checkExecutor, type ExecutorCheck } from './executor/check-executor.ts'
export { concurrencyOf, isExternal, isInProcess, localEngine } from './executor/find-launcher.ts'
export {
  type CoordinatorAddress,
  type Launchers,
  type OpenExecutorOptions,
  openExecutor,
  type StartedWorkerOptions,
  type StartWorkersOptions,
  startWorkers,
  workerCommand,
  workerVariables,
} from './executor/open-executor.ts'
export { agentIdentity } from './inputs/agent-hash.ts'
export { bytesHash, datasetHash, exportHash, hashesByName, settingInputs } from './inputs/input-hashes.ts'
export { type ExportPath, loadExport, parseExportPath } from './inputs/load-export.ts'
export type { LoadedAgent } from './inputs/loaded-agent.ts'
export { findLongPrompts, type LongPrompts, longPromptWarnings, type PromptModel } from './inputs/long-prompts.ts'
export { type MakeModelContext, makeModel, type WarmUpPlan } from './inputs/make-model.ts'
export {
  chosenColumn,
  datasetFindings,
  type Findings,
  loadNamedDataset,
  type NamedDataset,
  refuseProblems,
  requireKinds,
  resolveSource,
} from './inputs/named-dataset.ts'
export { findLoss, passWarnings } from './inputs/named-loss.ts'
export { findReward, type NamedReward, type RewardNames, tryReward } from './inputs/named-reward.ts'
export { raiseFindings } from './inputs/raise-findings.ts'
export type { TrainingPlan } from './inputs/training-plan.ts'
export { runWarmUp, type WarmUp, type WarmUpRequest } from './inputs/warm-up.ts'
export { listCheckpoints } from './loop/checkpoints.ts'
export { drawTasks, missingKinds } from './loop/draw-tasks.ts'
export {
  type EvaluatedTask,
  type EvaluationPlan,
  evaluationMetrics,
  evaluationRequests,
  requireOutcome,
  requireResults,
  summarizeEvaluation,
  summarizeTasks,
} from './loop/evaluate.ts'
export { toLimits } from './loop/group-requests.ts'
export { createOpenLoop, type OpenLoop, type OpenLoopOptions, type RolloutOptions } from './loop/open-loop.ts'
export type { EvaluationTasks, SelfDrivenOptions, SelfDrivenResult } from './loop/self-driven-options.ts'
export { requireTrainable, trainSelfDriven } from './loop/train-self-driven.ts'
export { type SftOptions, type SftResult, trainSft } from './loop/train-sft.ts'
export { createWork, type Work } from './loop/work.ts'
export { collectProblems, type ProblemCollection } from './preflight/collect-problems.ts'
export {
  answeredTask,
  listTools,
  type PreflightOptions,
  type PreflightPlan,
  preflight,
  type ScoreReferenceInput,
  scoreReference,
} from './preflight/preflight.ts'
export { referenceEpisode } from './preflight/reference-episode.ts'
export { TrainerProcessor, type TrainerProcessorClass } from './processor/trainer-processor.ts'
export * from './processor/trainer-registry.ts'
export { type CreateRewardOptions, createReward, type RewardSource } from './reward/create-reward.ts'
export * from './reward/define-reward.ts'
export { gaiaRewardFunc } from './reward/gaia-reward.ts'
export { normalizeNumberStr, normalizeStr, questionScorer, splitString } from './reward/question-scorer.ts'
export { solutionText } from './reward/solution-text.ts'
export type { RunOptions } from './run-options.ts'
