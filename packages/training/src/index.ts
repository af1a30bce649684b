export { openAgentSide, runnerSettings, type ServedAgentSide, serveAgentSide } from './agent-side/agent-side.ts'
export { checkAgentSide } from './agent-side/check-agent-side.ts'
export { policyName } from './agent-side/check-models.ts'
export { countCalls } from './agent-side/count-calls.ts'
export { checkRows, describeAgents, rowsWarning } from './agent-side/describe-agents.ts'
export { toFrozenRoutes } from './agent-side/frozen-routes.ts'
export { openPolicyGateway, type PolicyGatewayOptions, routeSettings } from './agent-side/policy-gateway.ts'
export { readListener } from './agent-side/read-listener.ts'
export { openRolloutParts, type RolloutParts } from './agent-side/rollout-parts.ts'
export { sharedServersWarning } from './agent-side/shared-servers.ts'
export { openTrainingSide, type TrainingSide } from './agent-side/training-side.ts'
export { callSettingsOf } from './config/call-settings.ts'
export { describeIssue } from './config/describe-issue.ts'
export { describeIssues, fieldsOf } from './config/describe-issues.ts'
export { ExecutorSettings } from './config/executor-settings.ts'
export { FrozenModelSettings } from './config/frozen-model.ts'
export * from './config/key-tree.ts'
export { PublicUrl } from './config/listener.ts'
export * from './config/local-config.ts'
export { inertNotes, isSet, lossProblems, type OwnConfig, ownKeysOf, readOwnConfig } from './config/own-config.ts'
export {
  type ConfigExtension,
  type KeyTranslator,
  parseLocalConfig,
  readLocalConfig,
  type TranslatedKeys,
} from './config/parse-local-config.ts'
export { PolicyModel, PolicySettings } from './config/policy-settings.ts'
export { randomToken, readSecret, readToken, Secret } from './config/secret.ts'
export type * from './config/setting-name.ts'
export { TrainerSettings, watchdogTimeoutMs } from './config/trainer-settings.ts'
export * from './config/trainer-source.ts'
export type * from './dataset/dataset-types.ts'
export { loadDataset, requireDataset } from './dataset/load-dataset.ts'
export { type RunData, readRunData } from './dataset/read-run-data.ts'
export { kindOf } from './dataset/task-column.ts'
export { toChannelTask } from './dataset/to-channel-task.ts'
export { writeParquet, writeParquetRows } from './dataset/write-parquet.ts'
export { firstFailure } from './directory/first-failure.ts'
export { watchHealth } from './directory/health-watch.ts'
export { policiesIn } from './directory/policies-in.ts'
export { countCallsOf, openRunAccounts, summarizeCalls } from './directory/run-accounts.ts'
export type { RunDirectory } from './directory/run-directory.ts'
export { removeUnfinished, runVersions } from './directory/run-files.ts'
export { openRunSession, type RunSession } from './directory/run-session.ts'
export { inTriedRun, type RunRequest } from './directory/tried-run.ts'
export { type ComparedEvaluation, compareEvaluations, type FinishedEvaluation, requirePairs } from './evaluation/compare.ts'
export { evaluateAgent } from './evaluation/evaluate-agent.ts'
export type { EvaluationPlan, OpenEvaluatedModel, PlannedModel } from './evaluation/evaluation-plan.ts'
export { findEvaluation, readEvaluation } from './evaluation/finished-evaluations.ts'
export { rankKey, requireFewFailures } from './evaluation/leave-report.ts'
export { rescoreEvaluation } from './evaluation/rescore.ts'
export { type EvaluatedEpisode, type EvaluationRollout, hasFailed, summarizeRollouts, toRow } from './evaluation/summarize.ts'
export { createFailureTally, type EvaluationHere } from './events/failure-tally.ts'
export { createIdleClock } from './events/idle-clock.ts'
export { checkExecutor } from './executor/check-executor.ts'
export { isExternal, localEngine } from './executor/find-launcher.ts'
export {
  type Launchers,
  openExecutor,
  openWorkers,
  type StartedWorkerOptions,
  workerCommand,
  workerVariables,
} from './executor/open-executor.ts'
export { agentIdentity } from './inputs/agent-hash.ts'
export { checkDatasets } from './inputs/check-datasets.ts'
export { bytesHash, datasetHash, exportHash, hashesByName, settingInputs } from './inputs/input-hashes.ts'
export { loadExport, parseExportPath } from './inputs/load-export.ts'
export type { LoadedAgent } from './inputs/loaded-agent.ts'
export { findLongPrompts, longPromptWarnings, type PromptModel } from './inputs/long-prompts.ts'
export { makeModel } from './inputs/make-model.ts'
export {
  chosenColumn,
  type Findings,
  refuseProblems,
  requireKinds,
  resolveSource,
} from './inputs/named-dataset.ts'
export { findLoss, passWarnings } from './inputs/named-loss.ts'
export {
  createNamedReward,
  findReward,
  type NamedReward,
  refuseGroupReward,
  requireReward,
  rewardOfPath,
  tryReward,
} from './inputs/named-reward.ts'
export { raiseFindings } from './inputs/raise-findings.ts'
export { findStartingModel } from './inputs/starting-model.ts'
export { type TrainingPlan, trainingName } from './inputs/training-plan.ts'
export { runWarmUp, type WarmUp, type WarmUpRequest } from './inputs/warm-up.ts'
export { listCheckpoints } from './loop/checkpoints.ts'
export { drawTasks, missingKinds } from './loop/draw-tasks.ts'
export {
  type EvaluatedTask,
  evaluationMetrics,
  evaluationRequests,
  requireOutcome,
  requireResults,
  summarizeEvaluation,
  summarizeTasks,
} from './loop/evaluate.ts'
export { toLimits } from './loop/group-requests.ts'
export { OpenLoop, type RolloutOptions } from './loop/open-loop.ts'
export type { SelfDrivenResult } from './loop/self-driven-options.ts'
export { requireTrainable, trainSelfDriven } from './loop/train-self-driven.ts'
export { trainSft } from './loop/train-sft.ts'
export { summarizeUpdates } from './loop/update-policy.ts'
export { createWork, type Work } from './loop/work.ts'
export { collectProblems, type ProblemCollection } from './preflight/collect-problems.ts'
export { answeredTask, listTools, preflight, scoreReference } from './preflight/preflight.ts'
export { TrainerProcessor, type TrainerProcessorClass } from './processor/trainer-processor.ts'
export * from './processor/trainer-registry.ts'
export { createReward, type RewardSource } from './reward/create-reward.ts'
export * from './reward/define-group-reward.ts'
export * from './reward/define-reward.ts'
export { gaiaRewardFunc } from './reward/gaia-reward.ts'
export { normalizeNumberStr, normalizeStr, questionScorer, splitString } from './reward/question-scorer.ts'
export { type RankOptions, rankReward } from './reward/rank-reward.ts'
export { type RubricOptions, rubricReward } from './reward/rubric-reward.ts'
export { solutionText } from './reward/solution-text.ts'
export type { RunOptions } from './run-options.ts'
