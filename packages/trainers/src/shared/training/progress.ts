import type { MetricsLine, MetricsReading, PythonTrainer, RunEvent } from '@aworld-train/core'
import { type EvaluationHere, requireResults } from '@aworld-train/training'
import { numbersOf } from '../process/metrics-file.ts'

export interface TrainerProgressOptions {
  readonly trainer: Pick<PythonTrainer, 'name' | 'output' | 'checkpoints'>
  /** Number of training steps. */
  readonly steps: number
  /** Step of the checkpoint that it begins with; 0 for none. */
  readonly resumedFromStep: number
  /** Rollouts of one evaluation. */
  readonly evaluation: { readonly tasks: number; readonly rollouts: number }
  readonly onEvent: (event: RunEvent) => void
  /** Outcome on this side of the evaluation that has just ended. */
  readonly evaluated: () => EvaluationHere
  /** Called when a training step has ended; `saved` if it has a checkpoint. */
  readonly onStep?: ((step: TrainerStep) => void) | undefined
  /** Measurements of this side since the last step ended. They are added to the step's metrics. */
  readonly measured?: (() => Readonly<Record<string, number>>) | undefined
  /** Milliseconds. Default: `Date.now`. */
  readonly now?: (() => number) | undefined
}

export interface TrainerStep {
  readonly step: number
  readonly metrics: Readonly<Record<string, number>>
  readonly saved: boolean
}

export interface TrainerEvaluation {
  readonly step: number
  readonly metrics: Readonly<Record<string, number>>
}

/**
 * Turns the console of a framework and the progress of its rollouts into the events of a run. `metrics` throws EVALUATION_FAILED if every
 * rollout of an evaluation failed.
 */
export interface TrainerProgress {
  line(line: string): void
  metrics(line: MetricsLine): void
  /** Reports a queued rollout, from which training or evaluation is told. */
  queued(partition: 'train' | 'val'): void
  /** Milliseconds by phase so far. */
  phasesMs(): Readonly<Record<string, number>>
  evaluations(): readonly TrainerEvaluation[]
  steps(): readonly TrainerStep[]
}

/** Number of recent steps that the remaining time is estimated from. */
const recentSteps = 10

export function createTrainerProgress(options: TrainerProgressOptions): TrainerProgress {
  const { trainer, steps, resumedFromStep, evaluation, onEvent, evaluated, onStep, measured, now = Date.now } = options
  const { milestones, readMetrics } = trainer.output
  const startPhase = `start ${trainer.name}`
  const phases: Record<string, number> = {}
  const evaluations: TrainerEvaluation[] = []
  const done: TrainerStep[] = []
  const stepTimes: number[] = []
  const startedAt = now()
  let reached = 0
  let running = false
  let step = resumedFromStep
  let stepStartedAt = startedAt
  let evaluationStartedAt: number | null = null

  const add = (phase: string, ms: number) => {
    phases[phase] = (phases[phase] ?? 0) + ms
  }
  const showStart = () =>
    onEvent({ type: 'phase-progress', at: now(), phase: startPhase, done: reached, total: milestones.length + 1, metrics: {} })

  function begin(): void {
    if (running) return
    running = true
    reached = milestones.length + 1
    showStart()
    add('start', now() - startedAt)
  }

  function startStep(): void {
    if (step >= steps) return
    step += 1
    stepStartedAt = now()
    onEvent({ type: 'step-start', at: now(), step, steps })
  }

  function endEvaluation(at: number, metrics: Readonly<Record<string, number>>): void {
    // A framework times the evaluations after a step itself.
    if (evaluationStartedAt !== null && at === resumedFromStep && done.length === 0) add('validation', now() - evaluationStartedAt)
    evaluationStartedAt = null
    evaluations.push({ step: at, metrics })
    const { failed, failures, abstained } = evaluated()
    onEvent({
      type: 'evaluation-end',
      at: now(),
      name: 'test',
      step: at,
      metrics: { ...metrics, ...evaluation, ...abstained },
      ...(failures.length > 0 && { failures }),
    })
    requireResults({ name: 'test', rollouts: evaluation.rollouts, failed, failures })
  }

  function endStep(at: number, { metrics: read, phasesMs, saved }: NonNullable<MetricsReading['step']>): void {
    for (const [phase, ms] of Object.entries(phasesMs)) add(phase, ms)
    if (step < at) startStep()
    stepTimes.push(now() - stepStartedAt)
    if (stepTimes.length > recentSteps) stepTimes.shift()
    const mean = stepTimes.reduce((sum, each) => sum + each, 0) / stepTimes.length
    const metrics = { ...read, ...measured?.() }
    const ended = { step: at, metrics, saved }
    done.push(ended)
    onEvent({ type: 'weights-updated', at: now(), weightVersion: at })
    const secondsLeft = ((steps - at) * mean) / 1000
    onEvent({ type: 'step-end', at: now(), step: at, steps, weightVersion: at, metrics: { ...metrics, secondsLeft } })
    if (saved) onEvent({ type: 'checkpoint-saved', at: now(), step: at, path: trainer.checkpoints.pathOf(at), best: false })
    onStep?.(ended)
    startStep()
  }

  return {
    line(line) {
      if (running) return
      const before = reached
      while (reached < milestones.length && milestones.slice(reached).some((milestone) => milestone.test(line))) {
        reached = milestones.findLastIndex((milestone) => milestone.test(line)) + 1
      }
      if (reached > before) showStart()
    },
    queued(partition) {
      begin()
      if (partition === 'train') {
        if (step === resumedFromStep && evaluationStartedAt === null) startStep()
      } else if (evaluationStartedAt === null) {
        evaluationStartedAt = now()
        onEvent({ type: 'evaluation-start', at: now(), name: 'test', rollouts: evaluation.rollouts })
      }
    },
    metrics({ step: at, data }) {
      begin()
      const { step: ended, evaluation: evaluated } = readMetrics(numbersOf(data))
      if (evaluated) endEvaluation(at, evaluated)
      if (ended) endStep(at, ended)
      else if (evaluated && at === resumedFromStep && done.length === 0 && step === resumedFromStep) startStep()
    },
    phasesMs: () => phases,
    evaluations: () => evaluations,
    steps: () => done,
  }
}
