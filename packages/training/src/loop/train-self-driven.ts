import { TrainError } from '@aworld-train/core'
import { requireColumn } from '../dataset/task-column.ts'
import { missingKinds } from './draw-tasks.ts'
import { mostPrompts } from './group-stream.ts'
import type { SelfDrivenOptions, SelfDrivenResult } from './self-driven-options.ts'
import { createTrainingLoop } from './training-loop.ts'

/**
 * Trains a policy with our own loop: rollouts, advantages, updates, publishing, evaluation, checkpoints. The same
 * options on the same store resume after the last committed step and follow the same curve.
 * Rejects with TRAINER_EMPTY_BATCH when every rollout of a step failed, POLICY_CONTEXT_OVERFLOW when every prompt of one
 * was too long, POLICY_LOGPROB_MISMATCH when the weights that sample are not those that train, CONFIG_INVALID for settings
 * that cannot be trained.
 */
export async function trainSelfDriven(options: SelfDrivenOptions): Promise<SelfDrivenResult> {
  requireTrainable(options)
  const { training, evaluation } = options.config
  if (training.klCoefficient !== 0 && !options.reference) {
    throw new TrainError(
      'CONFIG_INVALID',
      `training.klCoefficient is ${training.klCoefficient} and there is no reference policy; pass one, or set it to 0.`,
    )
  }
  const steps = training.steps ?? Math.ceil((training.epochs * options.tasks.length) / training.promptsPerStep)
  const loop = createTrainingLoop(options, steps)
  const isValidated = (step: number) =>
    training.evaluateEvery !== null && step > 0 && (step % training.evaluateEvery === 0 || step === steps)
  try {
    const committed = await loop.start()
    if (evaluation.before && committed === 0) await loop.evaluations.test('before', 0)
    if (isValidated(committed)) await loop.evaluations.validate(committed)
    for (let step = committed + 1; step <= steps; step++) {
      await loop.trainStep(step)
      if (isValidated(step)) await loop.evaluations.validate(step)
    }
    await loop.evaluations.test('after', steps)
    return loop.result('finished')
  } catch (error) {
    await loop.stop()
    if (options.signal.aborted) return loop.result('stopped')
    options.onFailure?.(loop.result('failed'))
    throw error
  }
}

/** Throws CONFIG_INVALID for settings that cannot be trained on these tasks; `trainSelfDriven` calls it too. */
export function requireTrainable({ config: { training, sampling }, tasks }: Pick<SelfDrivenOptions, 'config' | 'tasks'>): void {
  const refuse = (message: string): never => {
    throw new TrainError('CONFIG_INVALID', message)
  }
  if (tasks.length === 0) refuse('There are no tasks to train on; give at least one.')
  if (sampling.topP < 1 || sampling.topK > 0) {
    refuse(
      `sampling.topP is ${sampling.topP} and sampling.topK ${sampling.topK}; truncated sampling cannot be trained, set topP 1 and topK 0.`,
    )
  }
  if (sampling.temperature === 0) refuse('sampling.temperature is 0; greedy rollouts of a task are all alike, set it to 1.')
  if (training.samplesPerPrompt === 1 && training.advantage !== 'none') {
    refuse(
      `training.samplesPerPrompt is 1 and training.advantage "${training.advantage}": a group of one has nothing to compare with, so nothing would be learnt. Take at least 2 samples of each prompt, or set training.advantage to "none".`,
    )
  }
  const { firstSamples, samplesPerPrompt, teachingPrompts, promptsPerStep } = training
  if (firstSamples !== null && firstSamples >= samplesPerPrompt) {
    refuse(
      `training.firstSamples is ${firstSamples} and training.samplesPerPrompt ${samplesPerPrompt}, so that no rollout could be left out; take fewer first samples.`,
    )
  }
  for (const [key, value] of Object.entries({ firstSamples, teachingPrompts })) {
    if (value === null || training.advantage !== 'none') continue
    refuse(
      `training.${key} is ${value} and training.advantage "none", with which samples teach whatever the others of their group earn; leave training.${key} out, or compare the samples of a group ("group-relative").`,
    )
  }
  const most = mostPrompts(training)
  if (teachingPrompts !== null && most < Math.max(teachingPrompts, promptsPerStep)) {
    refuse(
      `A step draws ${most} prompts at most (training.maxPrompts), fewer than training.promptsPerStep, which is ${promptsPerStep}, or training.teachingPrompts, which is ${teachingPrompts}; raise training.maxPrompts.`,
    )
  }
  if (training.stratify) {
    const total = Object.values(training.stratify.counts).reduce((sum, count) => sum + count, 0)
    if (total !== training.promptsPerStep) {
      refuse(`training.stratify counts ${total} prompts and training.promptsPerStep is ${training.promptsPerStep}; make them equal.`)
    }
    requireColumn(tasks, training.stratify.key, 'training.stratify.key')
    const missing = missingKinds(tasks, training.stratify)
    if (missing.length > 0) {
      refuse(`No task has ${training.stratify.key} ${missing.map((kind) => `"${kind}"`).join(' or ')}, which training.stratify counts.`)
    }
  }
}
