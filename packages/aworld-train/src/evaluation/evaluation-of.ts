import type { TrainingDefinition } from '../training-definition.ts'
import type { EvaluationOptions } from './plan-evaluation.ts'

/** The parts of a training that an evaluation of it takes. */
export type EvaluatedTraining = Pick<
  TrainingDefinition,
  | 'agent'
  | 'testDataset'
  | 'rewardFunc'
  | 'config'
  | 'baseDirectory'
  | 'name'
  | 'trainEngineName'
  | 'model'
  | 'checkpoint'
  | 'samples'
  | 'seed'
>

/** What is evaluated of a training where nothing else is said: its agent, test set, reward and policy. */
export function evaluationOf(training: EvaluatedTraining): EvaluationOptions {
  const { agent, testDataset, rewardFunc, config, baseDirectory, name, trainEngineName, model, checkpoint, samples, seed } = training
  return {
    ...{ agent, dataset: testDataset, rewardFunc, config, baseDirectory, samples, seed },
    name: name === undefined ? undefined : `${name}-eval`,
    model: model ?? checkpoint,
    atTinker: trainEngineName === 'tinker',
  }
}
