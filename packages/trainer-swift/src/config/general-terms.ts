import { isTree, type KeyTree } from '@aworld-train/training'

/** Our settings in arguments of `swift rlhf`. */
export interface SwiftTerms {
  readonly fields: Readonly<Record<string, unknown>>
  readonly notes: readonly string[]
  readonly problems: readonly string[]
}

/** Renders our general settings as the user wrote them; what is not here stays with us, in `SwiftSettings`. A step of ms-swift is one update, ours a batch of rollouts. */
export function renderGeneralTerms(own: KeyTree): SwiftTerms {
  const fields: Record<string, unknown> = {}
  const notes: string[] = []
  const problems: string[] = []
  const training = isTree(own['training']) ? own['training'] : {}
  const sampling = isTree(own['sampling']) ? own['sampling'] : {}
  const set = (name: string, value: unknown) => {
    if (value !== undefined && value !== null) fields[name] = value
  }

  const passes = numberOf(training['passes'], 1)
  const prompts = numberOf(training['promptsPerStep'], 16)
  const samples = numberOf(training['samplesPerPrompt'], 8)
  const promptsPerUpdate = numberOf(training['promptsPerUpdate'], prompts)
  const updates = passes * Math.max(1, Math.ceil(prompts / promptsPerUpdate))
  const inUpdates = (value: unknown) => (typeof value === 'number' ? value * updates : undefined)
  if (['promptsPerStep', 'samplesPerPrompt', 'promptsPerUpdate'].some((key) => training[key] !== undefined)) {
    if (prompts % promptsPerUpdate !== 0)
      problems.push(
        `training.promptsPerUpdate is ${promptsPerUpdate}, which does not divide the ${prompts} prompts of a step; ms-swift's updates are alike.`,
      )
    set('num_generations', samples)
    set('per_device_train_batch_size', promptsPerUpdate * samples)
    set('steps_per_generation', prompts / promptsPerUpdate)
  }
  set('num_iterations', training['passes'])
  set('num_train_epochs', training['epochs'])
  set('warmup_steps', inUpdates(training['warmupSteps']))
  set('warmup_ratio', training['warmupFraction'])
  set('learning_rate', training['learningRate'])
  const end = training['finalLearningRateFraction']
  if (end === 1) set('lr_scheduler_type', 'constant_with_warmup')
  else if (typeof end === 'number') {
    set('lr_scheduler_type', 'cosine_with_min_lr')
    set('lr_scheduler_kwargs', { min_lr_rate: end })
    notes.push('training.finalLearningRateFraction is rendered as a cosine that ends there: ms-swift has no linear decay to it.')
  }
  set('epsilon', training['clipLow'])
  set('epsilon_high', training['clipHigh'])
  set('beta', training['klCoefficient'])
  if (training['entropyCoefficient'])
    problems.push(
      `training.entropyCoefficient is ${training['entropyCoefficient']}, and ms-swift has no such term in its loss; leave it out.`,
    )
  const aggregations: Readonly<Record<string, string>> = { 'token-mean': 'dapo', 'sequence-mean': 'grpo' }
  set('loss_type', aggregations[String(training['aggregation'])])
  const advantage = training['advantage']
  if (advantage === 'group-relative') set('scale_rewards', 'group')
  else if (advantage === 'group-relative-unscaled') set('scale_rewards', 'none')
  else if (advantage === 'leave-one-out') {
    set('advantage_estimator', 'rloo')
    set('scale_rewards', 'none')
    set('kl_in_reward', false)
  } else if (advantage !== undefined)
    problems.push(
      `training.advantage is ${JSON.stringify(advantage)}, which ms-swift does not have; use group-relative, group-relative-unscaled or leave-one-out.`,
    )
  set('weight_decay', training['weightDecay'])
  if (Array.isArray(training['betas'])) {
    set('adam_beta1', training['betas'][0])
    set('adam_beta2', training['betas'][1])
  }
  set('adam_epsilon', training['epsilon'])
  set('max_grad_norm', training['maxGradNorm'])
  if (training['checkpointEvery'] !== undefined) {
    // With `steps` transformers saves after the last one too, with `no` never.
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
  if (isTree(training['logprobCheck']))
    notes.push('training.logprobCheck is that of the engine in the box; aworldTrain.logprobCheck is the one of ms-swift.')
  for (const [term, why] of Object.entries(withoutEffect)) {
    const [section = '', key = ''] = term.split('.')
    const written = own[section]
    if (isTree(written) && written[key] !== undefined) notes.push(`${term} has no effect with ms-swift: ${why}.`)
  }
  return { fields, notes, problems }
}

const neverReached = 1_000_000_000

/** Settings that ms-swift has nothing for, with the reason. */
const withoutEffect: Readonly<Record<string, string>> = {
  'training.maxSampleTokens': 'max_completion_length bounds a row',
  'training.dropZeroVariance': 'a group whose rewards are all alike has advantage 0',
  'evaluation.topP': 'tokens are drawn from the whole distribution',
  'evaluation.topK': 'tokens are drawn from the whole distribution',
  'evaluation.greedy': 'test tasks are evaluated once, with evaluation.temperature',
}

const numberOf = (value: unknown, fallback: number) => (typeof value === 'number' ? value : fallback)
