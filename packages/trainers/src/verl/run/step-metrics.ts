/** verl 0.9's names of a step's metrics, by ours. The first that a line has is used. */
const renamed: Readonly<Record<string, readonly string[]>> = {
  rewardMean: ['critic/score/mean', 'critic/rewards/mean'],
  rewardMin: ['critic/score/min', 'critic/rewards/min'],
  rewardMax: ['critic/score/max', 'critic/rewards/max'],
  responseTokens: ['response_length/mean'],
  turns: ['num_turns/mean'],
  loss: ['actor/pg_loss'],
  gradientNorm: ['actor/grad_norm'],
  entropy: ['actor/entropy', 'actor/entropy_loss'],
  klDivergence: ['actor/ppo_kl'],
  learningRate: ['actor/lr'],
}

/** Timers of verl 0.9 that make up each phase of a step. */
const phaseTimers: Readonly<Record<string, readonly string[]>> = {
  rollout: ['gen'],
  logprobs: ['old_log_prob', 'ref', 'values'],
  update: ['update_actor', 'update_critic'],
  'weight-sync': ['update_weights'],
  validation: ['testing'],
  checkpoint: ['save_checkpoint'],
}

/** Milliseconds of each phase of a step. A phase that verl did not time is absent; `other` is the rest of the step. */
export function phasesOf(numbers: Readonly<Record<string, number>>): Record<string, number> {
  const phases: Record<string, number> = {}
  for (const [phase, timers] of Object.entries(phaseTimers)) {
    const seconds = timers.map((timer) => numbers[`timing_s/${timer}`]).filter((each) => each !== undefined)
    if (seconds.length > 0) phases[phase] = seconds.reduce((sum, each) => sum + each, 0) * 1000
  }
  const step = numbers['timing_s/step']
  if (step !== undefined) {
    // verl validates outside of its timer of the step.
    const inside = Object.entries(phases).reduce((sum, [phase, ms]) => (phase === 'validation' ? sum : sum + ms), 0)
    phases['other'] = Math.max(0, step * 1000 - inside)
  }
  return phases
}

/** The metrics of a step: under our names, the times of its phases as `<phase>Ms`, and everything under verl's names. */
export function stepMetrics(numbers: Readonly<Record<string, number>>): Record<string, number> {
  const metrics: Record<string, number> = {}
  for (const [name, theirs] of Object.entries(renamed)) {
    const found = theirs.map((key) => numbers[key]).find((value) => value !== undefined)
    if (found !== undefined) metrics[name] = found
  }
  for (const [phase, ms] of Object.entries(phasesOf(numbers))) metrics[`${camelCase(phase)}Ms`] = ms
  return { ...metrics, ...numbers }
}

const camelCase = (phase: string) => phase.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase())

/**
 * The result of a validation of verl 0.9: the mean of its rewards over data sources, of the first sample of each task or the mean of n
 * (`val-core/<source>/<acc|reward>/mean@n`), and all of its numbers; `null` for a line without one.
 */
export function verlEvaluationMetrics(numbers: Readonly<Record<string, number>>): Record<string, number> | null {
  const entries = Object.entries(numbers).filter(([name]) => name.startsWith('val-'))
  if (entries.length === 0) return null
  const means = (variable: string) =>
    entries.filter(([name]) => new RegExp(`^val-(?:core|aux)/.+/${variable}/mean@\\d+$`).test(name)).map(([, value]) => value)
  // `acc` counts a failed rollout as 0; `reward` leaves it out.
  const found = [means('acc'), means('reward')].find((values) => values.length > 0)
  const reward = found && found.reduce((sum, value) => sum + value, 0) / found.length
  return { ...(reward === undefined ? {} : { reward }), ...Object.fromEntries(entries) }
}

/** Whether a line is of a training step, with or without a validation. The validation before training is not. */
export const isTrainingStep = (numbers: Readonly<Record<string, number>>) => 'timing_s/step' in numbers || 'training/global_step' in numbers
