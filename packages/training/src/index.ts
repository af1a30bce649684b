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
export { TrainerProcessor, type TrainerProcessorClass } from './processor/trainer-processor.ts'
export * from './processor/trainer-registry.ts'
export { type CreateRewardOptions, createReward, type RewardSource } from './reward/create-reward.ts'
export * from './reward/define-reward.ts'
export { gaiaRewardFunc } from './reward/gaia-reward.ts'
export { normalizeNumberStr, normalizeStr, questionScorer, splitString } from './reward/question-scorer.ts'
export { solutionText } from './reward/solution-text.ts'
