import type { ErrorCode, RowSelection, TrainerCheck } from '@aworld-train/core'
import { beforeAll, describe, expect, test } from 'vitest'
import { advantageDifference, gapOf, type Normalization, pairRows } from './compare-run.ts'
import { examineRun, rowsOfStep } from './examine-run.ts'
import type { TrainedRun, TrainerArithmetic } from './trained-run.ts'
import { createTrainerExam, oneOddRewards, type TrainerExam } from './trainer-exam.ts'

/** Checks of the exam. A trainer may lack some, with a reason. */
export const trainerChecks: Readonly<Record<TrainerCheck, string>> = {
  rows: 'its batch has the ids and masks of the episodes',
  gradients: 'what is masked has no gradient',
  advantages: 'advantages are those of the group, by task',
  logprobs: 'logprobs are those of the reference',
  loss: 'the loss is that of the reference',
  direction: 'the first update has the direction of the reference',
  gap: 'what samples are the weights that train, in every step',
  emptyTurn: 'a turn that has a token and no text is trained, and the conversation goes on behind it',
  microBatches: 'a batch in two micro-batches of unequal length is the same update',
  leaveOneOut: 'leave-one-out advantages of a group with one loser, or one winner, are those of the formula',
  ledger: 'every sampled token is trained or explained',
  resumes: 'killed after a checkpoint, it goes on',
  failures: 'failed rollouts have no part in their groups, and a batch of them ends the run',
  refusals: 'bad input is refused by name',
}

/** Errors that a user can make before training begins. */
export type BadInput = 'unknownKey' | 'groupOfOne' | 'allRows' | 'missingPackage' | 'unreachable'

export interface Refusal {
  readonly code: ErrorCode
  /** Pattern that the message must match. */
  readonly message: RegExp
  train(): Promise<unknown>
}

export interface TrainerSubject extends TrainerArithmetic {
  /** The rows of an episode that its batches hold. */
  readonly rows: RowSelection
  /**
   * Trains the exam from the same weights each time: all tasks in every step, one update a step, temperature 1, a checkpoint of every
   * step. Rejects as the trainer does.
   */
  train(exam: TrainerExam, options: TrainOptions): Promise<TrainedRun>
  /** The same, but killed when the first step has its checkpoint, and started again. */
  trainKilled?: TrainerSubject['train'] | undefined
  /** How it refuses each error; a sentence if the error is impossible with it. */
  readonly refusals: Readonly<Record<BadInput, Refusal | string>>
  /** Checks that it cannot pass, with the reason. */
  readonly not?: Readonly<Partial<Record<TrainerCheck, string>>> | undefined
  /** Milliseconds after which a hanging rollout is given up in the exam of failures. Any other rollout must take less. Default 30,000. */
  readonly rolloutTimeoutMs?: number | undefined
  /** Milliseconds that one training may take. Default 600,000. */
  readonly timeoutMs?: number | undefined
}

export interface TrainOptions {
  readonly steps: number
  /** Milliseconds that a rollout may take. */
  readonly rolloutTimeoutMs?: number | undefined
  /** Parts into which the batch of an update is split, whose gradients are summed. Default 1. */
  readonly microBatches?: number | undefined
  /** Replaces the group-relative advantages. */
  readonly advantage?: 'leave-one-out' | undefined
}

/** The exam for every trainer. It compares the training with the episodes, and with a reference in double precision. */
export function describeTrainer(name: string, subject: TrainerSubject): void {
  const { rows, advantageEpsilon, not = {}, rolloutTimeoutMs = 30_000, timeoutMs = 600_000 } = subject

  const exam = (check: TrainerCheck, run: () => Promise<unknown>) =>
    test(trainerChecks[check], { timeout: timeoutMs }, async (context) => {
      if (not[check] !== undefined) return context.skip(not[check])
      const figure = await run()
      if (typeof figure === 'number') context.annotate(`${figure}`)
    })

  const pairsOf = (run: TrainedRun, step: number, normalization: Normalization = advantageEpsilon) =>
    run.batches.filter((batch) => batch.step === step).flatMap((batch) => pairRows(run, batch, rows, normalization))

  describe(`trainer: ${name}`, () => {
    let run: TrainedRun
    let checks: ReturnType<typeof examineRun>

    beforeAll(async () => {
      run = await subject.train(createTrainerExam({ hasEmptyTurn: not.emptyTurn === undefined }), { steps: 2 })
      checks = examineRun(run, subject)
    }, timeoutMs)

    for (const check of ['rows', 'gradients', 'advantages', 'logprobs', 'loss', 'direction', 'gap', 'emptyTurn', 'ledger'] as const)
      exam(check, () => checks[check]())

    exam('microBatches', async () => {
      const cut = examineRun(await subject.train(createTrainerExam(), { steps: 1, microBatches: 2 }), subject)
      await cut.loss()
      return await cut.direction()
    })

    exam('leaveOneOut', async () => {
      const oneOdd = await subject.train(createTrainerExam({ rewards: oneOddRewards }), { steps: 1, advantage: 'leave-one-out' })
      const pairs = pairsOf(oneOdd, 1, 'leave-one-out')
      expect(pairs.length).toBe(rowsOfStep(rows))
      const difference = advantageDifference(pairs)
      expect(difference, 'advantages').toBeLessThanOrEqual(1e-5)
      return difference
    })

    exam('resumes', async () => {
      const resumed = await subject.trainKilled!(createTrainerExam(), { steps: 3 })
      expect(resumed.steps).toEqual([1, 2, 3])
      expect(resumed.ledger.unexplained).toBe(0)
      for (const step of resumed.steps) {
        const pairs = pairsOf(resumed, step)
        expect(pairs.length, `rows of step ${step}`).toBe(rowsOfStep(rows))
        const gap = gapOf(pairs)
        if (gap !== null) expect(gap, `sampled and trained, step ${step}`).toBeLessThanOrEqual(1e-4)
      }
    })

    exam('failures', async () => {
      const faults = { first: { 1: 'throws' }, second: { 0: 'not-a-number', 3: 'hangs' } } as const
      const some = await subject.train(createTrainerExam({ faults }), { steps: 1, rolloutTimeoutMs })
      // A failed rollout is replaced by one with a reward of its own, or left out of the mean.
      const pairs = pairsOf(some, 1)
      expect(pairs.length).toBeGreaterThanOrEqual(5)
      expect(advantageDifference(pairs)).toBeLessThanOrEqual(5e-4)
      expect(some.ledger.unexplained).toBe(0)
      const all = subject.train(createTrainerExam({ faults: 'all' }), { steps: 1 })
      await expect(all).rejects.toMatchObject({ code: 'TRAINER_EMPTY_BATCH' })
    })

    const refusals = Object.entries(subject.refusals)
    test.for(refusals)(`${trainerChecks.refusals}: %s`, { timeout: timeoutMs }, async ([, refusal], context) => {
      if (typeof refusal === 'string') return context.skip(refusal)
      const { code, message } = refusal
      await expect(refusal.train()).rejects.toMatchObject({ code, message: expect.stringMatching(message) })
    })
  })
}
