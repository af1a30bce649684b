export {
  Agent,
  AgentConfig,
  type AgentConfigOptions,
  type AgentDefinition,
  type AgentFunction,
  type AgentFunctionContext,
  type AgentHooks,
  type AgentOptions,
  defineAgents,
  defineState,
  GraphBuildType,
  HandoffSwarm,
  LoopableAgent,
  type LoopableAgentOptions,
  ParallelizableAgent,
  parallel,
  RunConfig,
  type RunConfigOptions,
  SerialableAgent,
  Swarm,
  type SwarmOptions,
  serial,
  Task,
  type TaskOptions,
  type TaskResponse,
  TeamSwarm,
  type Tool,
  type ToolContext,
  tool,
  WorkflowSwarm,
} from '@aworld-train/agent'
export { type ChatModel, chatMlTemplate, loadChatModel, renderChat, toWarmUpSamples } from '@aworld-train/chat'
export {
  type AgentAnswer,
  type AgentProgram,
  type AgentTask,
  type AttemptContext,
  type AttemptState,
  cispo,
  drGrpo,
  type Environment,
  type Episode,
  type EvaluationReport,
  type EvaluationRow,
  type EvaluationWithResults,
  gspo,
  type McpConfig,
  type Message,
  type PolicyLoss,
  type PolicyLossRow,
  type RolloutContext,
  type RowLoss,
  type RunEvent,
  type RunReport,
  roleAdvantages,
  type Tools,
  TrainError,
  type TrainingSample,
  type TrainingTask,
  toTrainingSamples,
} from '@aworld-train/core'
export { createLocalEngine, createVocabularyTokenizer, initModel, trainBpe } from '@aworld-train/engines/local'
export { getAgentToolEnvAndServers } from '@aworld-train/environment'
export type { DryRunReport } from '@aworld-train/trainers/shared'
export {
  defineGroupReward,
  defineReward,
  gaiaRewardFunc,
  type LoadedAgent,
  loadDataset,
  questionScorer,
  type RolloutOptions,
  type RunOptions,
  rankReward,
  rubricReward,
  TrainerProcessor,
  type TrainerProcessorClass,
  trainSft,
  type WarmUp,
  type WarmUpRequest,
} from '@aworld-train/training'
export { AgentTrainer } from './agent-trainer.ts'
export type { AgentTrainerOptions } from './agent-trainer-options.ts'
export { AworldAgentLoop } from './aworld/agent-loop.ts'
export type { AworldTrainerOptions } from './aworld/trainer-options.ts'
export { createEnvironment, openVerifier } from './environment.ts'
export { evaluationOf } from './evaluation/evaluation-of.ts'
export type { EvaluationOptions } from './evaluation/plan-evaluation.ts'
export { type RescoreOptions, type RunEvaluationOptions, rescoreRun, runEvaluation } from './evaluation/run-evaluation.ts'
export { launcherEngines, workerEntry } from './launchers.ts'
export { loadAgent, type TrainableAgent } from './load/load-agent.ts'
export { type DoctorCheck, diagnose } from './local/diagnose.ts'
export { LocalTrainer } from './local/local-trainer.ts'
export type { OpenPolicy, PolicyResult } from './local/open-policy.ts'
export { describeTinker } from './policies/tinker-policy.ts'
export { trainerSections } from './policies/trainer-sections.ts'
export { PythonTrainerProcessor } from './python-trainer-processor.ts'
export { pythonTrainers } from './python-trainers.ts'
export type { RunDashboardOptions } from './run-dashboard.ts'
export { createRunners, execTasks, Runners, serialExecTasks } from './runners.ts'
export { defineTraining, type TrainingDefinition } from './training-definition.ts'
export { type AgentWorkerOptions, runAgentWorker } from './worker/run-agent-worker.ts'
