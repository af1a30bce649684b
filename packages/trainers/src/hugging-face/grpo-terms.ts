import { isTree, type KeyTree, lossProblems, numberAt } from '@aworld-train/training'
import { inertTermNotes, type RenderedTerms } from '../shared/training/module-config.ts'
import type { GrpoFramework } from './grpo-framework.ts'

/**
 * Renders our general settings that the user wrote in the framework's keys; any other setting stays with us. A step of the framework is one
 * update, and one of ours is a batch of rollouts.
 */
export function renderGrpoTerms(own: KeyTree, framework: GrpoFramework): RenderedTerms {
  const { title, warmupFractionKey, entropyKey, leaveOneOut } = framework
  const fields: Record<string, unknown> = {}
  const notes: string[] = []
  const training = isTree(own['training']) ? own['training'] : {}
  const problems = lossProblems(training, title, 'loss_type')
  const sampling = isTree(own['sampling']) ? own['sampling'] : {}
  const set = (name: string, value: unknown) => {
    if (value !== undefined && value !== null) fields[name] = value
  }

  const prompts = numberAt(training, 'promptsPerStep', 16)
  const samples = numberAt(training, 'samplesPerPrompt', 8)
  const promptsPerUpdate = numberAt(training, 'promptsPerUpdate', prompts)
  const updates = numberAt(training, 'passes', 1) * Math.max(1, Math.ceil(prompts / promptsPerUpdate))
  const inUpdates = (value: unknown) => (typeof value === 'number' ? value * updates : undefined)
  if (['promptsPerStep', 'samplesPerPrompt', 'promptsPerUpdate'].some((key) => training[key] !== undefined)) {
    if (prompts % promptsPerUpdate !== 0)
      problems.push(
        `training.promptsPerUpdate is ${promptsPerUpdate}, which does not divide the ${prompts} prompts of a step; ${title}'s updates are alike.`,
      )
    set('num_generations', samples)
    set('per_device_train_batch_size', promptsPerUpdate * samples)
    set('steps_per_generation', prompts / promptsPerUpdate)
  }
  set('num_iterations', training['passes'])
  set('num_train_epochs', training['epochs'])
  set(warmupFractionKey, training['warmupFraction'])
  set('warmup_steps', inUpdates(training['warmupSteps']))
  set('learning_rate', training['learningRate'])
  const end = training['finalLearningRateFraction']
  if (end === 1) set('lr_scheduler_type', 'constant_with_warmup')
  else if (typeof end === 'number') {
    set('lr_scheduler_type', 'cosine_with_min_lr')
    set('lr_scheduler_kwargs', { min_lr_rate: end })
    notes.push(`training.finalLearningRateFraction is rendered as a cosine that ends there: ${title} has no linear decay to it.`)
  }
  set('epsilon', training['clipLow'])
  set('epsilon_high', training['clipHigh'])
  set('beta', training['klCoefficient'])
  if (entropyKey !== null) set(entropyKey, training['entropyCoefficient'])
  else if (training['entropyCoefficient'])
    problems.push(
      `training.entropyCoefficient is ${training['entropyCoefficient']}, and ${title} has no such term in its loss; leave it out.`,
    )
  const aggregations: Readonly<Record<string, string>> = { 'token-mean': 'dapo', 'sequence-mean': 'grpo' }
  set('loss_type', aggregations[String(training['aggregation'])])
  const advantages: Readonly<Record<string, KeyTree>> = {
    'group-relative': { scale_rewards: 'group' },
    'group-relative-unscaled': { scale_rewards: 'none' },
    ...(leaveOneOut && { 'leave-one-out': leaveOneOut }),
  }
  const advantage = training['advantage']
  if (advantage !== undefined && !Object.hasOwn(advantages, String(advantage)))
    problems.push(
      `training.advantage is ${JSON.stringify(advantage)}, which ${title} does not have; use one of ${Object.keys(advantages).join(', ')}.`,
    )
  for (const [key, value] of Object.entries(advantages[String(advantage)] ?? {})) set(key, value)
  set('weight_decay', training['weightDecay'])
  if (Array.isArray(training['betas'])) {
    set('adam_beta1', training['betas'][0])
    set('adam_beta2', training['betas'][1])
  }
  set('adam_epsilon', training['epsilon'])
  set('max_grad_norm', training['maxGradNorm'])
  if (training['checkpointEvery'] !== undefined) {
    // With `steps` transformers also saves after the last step; with `no` it never saves.
    set('save_strategy', 'steps')
    set('save_steps', training['checkpointEvery'] === null ? neverReached : inUpdates(training['checkpointEvery']))
  }
  if (training['evaluateEvery'] !== undefined) {
    set('eval_strategy', training['evaluateEvery'] === null ? 'no' : 'steps')
    set('eval_steps', inUpdates(training['evaluateEvery']))
  }
  set('temperature', sampling['temperature'])
  set('top_p', sampling['topP'])
  set('top_k', sampling['topK'])
  set('seed', own['seed'])
  return { fields, notes: [...notes, ...inertTermNotes(own, { title, responseLength: 'max_completion_length' })], problems }
}

const neverReached = 1_000_000_000
