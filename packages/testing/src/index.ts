export {
  describeExecutor,
  type ExecutorCheck,
  type ExecutorCoordinator,
  type ExecutorSubject,
  executorChecks,
  type SeparateCoordinator,
} from './describe-executor.ts'
export { type DescribeLearnerOptions, describeLearner, type LearnerUnderTest } from './describe-learner.ts'
export { type DescribeSandboxOptions, describeSandbox } from './describe-sandbox.ts'
export { type DescribeTokenEngineOptions, describeTokenEngine } from './describe-token-engine.ts'
export { type ScriptedCompletion, type ScriptedEngine, type ScriptedEngineOptions, scriptedEngine } from './fake-engine.ts'
export { naughtyNames, naughtyStrings } from './naughty-strings.ts'
export {
  startTinkerServer,
  type TinkerAnswer,
  type TinkerCall,
  type TinkerServer,
  type TinkerServerOptions,
  type TinkerServerPolicy,
} from './tinker/tinker-server.ts'
export type { ServerReduction } from './tinker/to-update.ts'
export { type TinyModelOptions, writeTinyModel } from './tiny-model.ts'
export {
  type BadInput,
  describeTrainer,
  type Refusal,
  type TrainerSubject,
  type TrainOptions,
  trainerChecks,
} from './trainer/describe-trainer.ts'
export { examineRun } from './trainer/examine-run.ts'
export type { TrainedBatch, TrainedRow, TrainedRun, TrainerArithmetic } from './trainer/trained-run.ts'
export {
  createTrainerExam,
  type ExamContext,
  type ExamFault,
  type ExamTask,
  type TrainerExam,
  type TrainerExamOptions,
} from './trainer/trainer-exam.ts'
