export { type DescribeLearnerOptions, describeLearner, type LearnerUnderTest } from './describe-learner.ts'
export { type DescribeTokenEngineOptions, describeTokenEngine } from './describe-token-engine.ts'
export { type ScriptedCompletion, type ScriptedEngine, type ScriptedEngineOptions, scriptedEngine } from './fake-engine.ts'
export { type TinyModelOptions, writeTinyModel } from './tiny-model.ts'
