import type { RunEvent } from '@aworld-train/protocol'
import { isTrainingStep, numbersOf, phasesOf, stepMetrics, verlEvaluationMetrics } from './step-metrics.ts'
import type { MetricsLine } from './verl-process.ts'

export interface VerlProgressOptions {
  /** Training steps in all. */
  readonly steps: number
  /** Step of the checkpoint that verl begins with; 0 for none. */
  readonly resumedFromStep: number
  /** Rollouts of one evaluation, which verl calls validation. */
  readonly evaluation: { readonly tasks: number; readonly rollouts: number }
  readonly onEvent: (event: RunEvent) => void
  /** A step of training has ended; `saved` where verl has written a checkpoint of it. */
  readonly onStep?: ((step: VerlStep) => void) | undefined
  /** Measurements of this side since the last step ended, which are added to the step's metrics. */
  readonly measured?: (() => Readonly<Record<string, number>>) | undefined
  /** Milliseconds; `Date.now` by default. */
  readonly now?: (() => number) | undefined
}

export interface VerlStep {
  readonly step: number
  readonly metrics: Readonly<Record<string, number>>
  readonly saved: boolean
}

export interface VerlEvaluation {
  readonly step: number
  readonly metrics: Readonly<Record<string, number>>
}

/** Turns verl's console and the progress of its rollouts into the events of a run. */
export interface VerlProgress {
  line(line: string): void
  metrics(line: MetricsLine): void
  /** A rollout was queued: verl trains or validates. */
  queued(partition: 'train' | 'val'): void
  /** Milliseconds by phase so far. */
  phasesMs(): Readonly<Record<string, number>>
  evaluations(): readonly VerlEvaluation[]
  steps(): readonly VerlStep[]
}

/** The phase of verl 0.9 before its first rollout, by lines of its console. */
const milestones: readonly RegExp[] = [
  /ray init kwargs|Started a local Ray instance|Connected to Ray cluster/,
  /\bpid=\d+/,
  /dataloader initialized|Size of (?:train|val) dataloader/,
]

const startPhase = 'start verl'
/** Steps that the time left is estimated from. */
const recentSteps = 10

export function createVerlProgress(options: VerlProgressOptions): VerlProgress {
  const { steps, resumedFromStep, evaluation, onEvent, onStep, measured, now = Date.now } = options
  const phases: Record<string, number> = {}
  const evaluations: VerlEvaluation[] = []
  const done: VerlStep[] = []
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

  function endEvaluation(at: number, metrics: Record<string, number>): void {
    // verl times the evaluations after a step itself.
    if (evaluationStartedAt !== null && at === resumedFromStep && done.length === 0) add('validation', now() - evaluationStartedAt)
    evaluationStartedAt = null
    evaluations.push({ step: at, metrics })
    onEvent({ type: 'evaluation-end', at: now(), name: 'test', step: at, metrics: { ...metrics, ...evaluation } })
  }

  function endStep(at: number, numbers: Record<string, number>): void {
    const saved = 'timing_s/save_checkpoint' in numbers
    for (const [phase, ms] of Object.entries(phasesOf(numbers))) add(phase, ms)
    if (step < at) startStep()
    stepTimes.push(now() - stepStartedAt)
    if (stepTimes.length > recentSteps) stepTimes.shift()
    const mean = stepTimes.reduce((sum, each) => sum + each, 0) / stepTimes.length
    const metrics = { ...stepMetrics(numbers), ...measured?.() }
    const ended = { step: at, metrics, saved }
    done.push(ended)
    onEvent({ type: 'weights-updated', at: now(), weightVersion: at })
    const secondsLeft = ((steps - at) * mean) / 1000
    onEvent({ type: 'step-end', at: now(), step: at, steps, weightVersion: at, metrics: { ...metrics, secondsLeft } })
    if (saved) onEvent({ type: 'checkpoint-saved', at: now(), step: at, path: `checkpoints/global_step_${at}`, best: false })
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
      const numbers = numbersOf(data)
      const evaluated = verlEvaluationMetrics(numbers)
      if (evaluated) endEvaluation(at, evaluated)
      if (isTrainingStep(numbers)) endStep(at, numbers)
      else if (evaluated && at === resumedFromStep && done.length === 0 && step === resumedFromStep) startStep()
    },
    phasesMs: () => phases,
    evaluations: () => evaluations,
    steps: () => done,
  }
}
