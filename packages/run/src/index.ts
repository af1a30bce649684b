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
export {
  openRunSession,
  type RunBeginning,
  type RunSession,
  type RunSessionOptions,
  type TrainingResult,
} from './directory/run-session.ts'
export { inTriedRun, type RunRequest, type TriedRunRequest } from './directory/tried-run.ts'
export { type KeptCheckpoint, watchCollapse } from './events/collapse-watch.ts'
export { createEpisodeSampler } from './events/episode-sampler.ts'
export { createFailureTally, type FailureTally } from './events/failure-tally.ts'
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
export type { GrpoFramework, GrpoQuestion } from './hugging-face/grpo-framework.ts'
export { createGrpoConsoleReader, grpoCheckpoints, readGrpoMetrics } from './hugging-face/grpo-output.ts'
export { type GrpoPlan, planGrpo, writeGrpoFiles } from './hugging-face/plan-grpo.ts'
export { type GrpoConfig, readGrpoConfig } from './hugging-face/read-grpo-config.ts'
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
export type * from './ledger/read-ledger.ts'
export { readLedger } from './ledger/read-ledger.ts'
export { type IncarnationRecord, lastStandingSteps, standingBatches } from './ledger/standing-batches.ts'
export { type TokenLedgerInput, type TrainerTokenLedger, toTokenLedger } from './ledger/to-token-ledger.ts'
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
export { type CheckTorchOptions, checkTorch } from './python-trainer/check-torch.ts'
export {
  type CheckedTraining,
  checkPythonTraining,
  checkTrainerReward,
  findTrainerPython,
  type TrainingInputs,
} from './python-trainer/check-training.ts'
export { type DiagnoseOptions, diagnoseTrainer, toProblem } from './python-trainer/diagnose.ts'
export { type DryRunReport, dryRun } from './python-trainer/dry-run.ts'
export {
  inertTermNotes,
  type ModuleConfig,
  type ModuleConfigParts,
  type ModulePlan,
  type ModulePlanParts,
  ModuleSettings,
  type RenderedTerms,
  type ResponseTokens,
  toModuleConfig,
  toModulePlan,
} from './python-trainer/module-config.ts'
export { contextLengthOf } from './python-trainer/plan-start.ts'
export { createTrainerProgress, type TrainerProgress, type TrainerStep } from './python-trainer/progress.ts'
export { runPythonTraining, type TrainerRunState, trainerStateKey } from './python-trainer/run-python-training.ts'
export { type MetricNames, timedMetricsReader } from './python-trainer/timed-metrics.ts'
export { toCheck } from './python-trainer/to-check.ts'
export type { PythonTrainingPlan, Trainer } from './python-trainer/training-plan.ts'
export {
  type DrawnOrderOptions,
  drawnOrder,
  moduleCommand,
  type PlanFilesOptions,
  writePlanFiles,
} from './python-trainer/write-plan-files.ts'
export type { RunOptions } from './run-options.ts'
