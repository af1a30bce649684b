import { isTree, type KeyTree, lossProblems } from '@aworld-train/training'
import { inertTermNotes, type RenderedTerms } from '../../shared/training/module-config.ts'

/**
 * Renders our general settings that the user wrote in AReaL's keys, by their dotted paths. Any other setting stays with us, in
 * `ArealSettings`, or needs the number of steps.
 */
export function renderGeneralTerms(own: KeyTree): RenderedTerms {
  const fields: Record<string, unknown> = {}
  const notes: string[] = []
  const training = isTree(own['training']) ? own['training'] : {}
  const problems = lossProblems(training, 'AReaL', 'actor.importance_sampling_level')
  const sampling = isTree(own['sampling']) ? own['sampling'] : {}
  const set = (name: string, value: unknown) => {
    if (value !== undefined && value !== null) fields[name] = value
  }
  const refuse = (key: string, has: string) => problems.push(`training.${key} is ${JSON.stringify(training[key])}, and AReaL ${has}.`)

  set('total_train_steps', training['steps'])
  set('total_train_epochs', training['epochs'])
  if (['promptsPerStep', 'samplesPerPrompt', 'promptsPerUpdate'].some((key) => training[key] !== undefined)) {
    const prompts = numberOf(training['promptsPerStep'], 16)
    set('train_dataset.batch_size', prompts)
    set('gconfig.n_samples', numberOf(training['samplesPerPrompt'], 8))
    set('actor.ppo_n_minibatches', Math.ceil(prompts / numberOf(training['promptsPerUpdate'], prompts)))
  }
  set('actor.optimizer.lr', training['learningRate'])
  set('actor.optimizer.weight_decay', training['weightDecay'])
  if (Array.isArray(training['betas'])) {
    set('actor.optimizer.beta1', training['betas'][0])
    set('actor.optimizer.beta2', training['betas'][1])
  }
  set('actor.optimizer.eps', training['epsilon'])
  set('actor.optimizer.gradient_clipping', training['maxGradNorm'])
  set('actor.optimizer.warmup_steps_proportion', training['warmupFraction'])
  const end = training['finalLearningRateFraction']
  if (typeof end === 'number') {
    set('actor.optimizer.lr_scheduler_type', end === 1 ? 'constant' : end === 0 ? 'linear' : 'cosine')
    set('actor.optimizer.min_lr_ratio', end)
    if (end > 0 && end < 1)
      notes.push('training.finalLearningRateFraction is rendered as a cosine that ends there: the linear decay of AReaL ends at 0.')
  }
  set('actor.eps_clip', training['clipLow'])
  set('actor.eps_clip_higher', training['clipHigh'])
  if (training['klCoefficient']) refuse('klCoefficient', 'needs a reference model for it; write actor.kl_ctl and ref')
  if (training['entropyCoefficient']) refuse('entropyCoefficient', 'has no entropy term; leave it out')
  if (training['aggregation'] === 'sequence-mean') refuse('aggregation', 'takes the mean over tokens; use token-mean')
  const advantage = training['advantage']
  if (advantage === 'group-relative' || advantage === 'group-relative-unscaled')
    set('actor.reward_norm', {
      mean_level: 'group',
      std_level: advantage === 'group-relative' ? 'group' : null,
      group_size: `\${gconfig.n_samples}`,
    })
  else if (advantage === 'leave-one-out')
    set('actor.reward_norm', { mean_level: 'group', mean_leave1out: true, std_level: null, group_size: `\${gconfig.n_samples}` })
  else if (advantage !== undefined) refuse('advantage', 'is to norm rewards here; use group-relative, or write actor.reward_norm')
  if (training['checkpointEvery'] !== undefined) set('recover.freq_steps', training['checkpointEvery'] ?? neverReached)
  if (training['evaluateEvery'] !== undefined) set('evaluator.freq_steps', training['evaluateEvery'] ?? neverReached)
  set('gconfig.temperature', sampling['temperature'])
  set('gconfig.top_p', sampling['topP'])
  if (sampling['topK']) set('gconfig.top_k', sampling['topK'])
  set('seed', own['seed'])
  return { fields, notes: [...notes, ...inertTermNotes(own, { title: 'AReaL', responseLength: 'gconfig.max_new_tokens' })], problems }
}

const neverReached = 1_000_000_000

const numberOf = (value: unknown, fallback: number) => (typeof value === 'number' ? value : fallback)
