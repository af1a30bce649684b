import type { RowSelection, Turn } from '@aworld-train/core'
import { expect } from 'vitest'
import {
  advantageDifference,
  expectedLoss,
  gapOf,
  gradientsOf,
  logprobDifferences,
  pairRows,
  type RowPair,
  updateDirection,
  withShiftedToken,
} from './compare-run.ts'
import { type ReferenceModel, readReferenceModel } from './reference-model.ts'
import type { TrainedRun, TrainerArithmetic } from './trained-run.ts'
import { cutTurn } from './trainer-exam.ts'

/**
 * Largest differences between a trainer and the reference. Two trainers' advantages differ by their epsilons, from 1e-6 to 1e-4. Logprobs
 * in float32 are off by up to 1.2e-5 after unlikely tokens.
 */
const limits = { advantage: 5e-4, logprob: 3e-5, loss: 1e-5, cosine: 0.999, gap: 1e-4 }

const commonEpsilon = 1e-4

/** Rows of a step of the exam. The episode that forks has two. */
export const rowsOfStep = (rows: RowSelection) => (rows === 'all' ? 9 : 8)

/** The checks of one training of the exam. Each throws if the training fails it, and resolves to the figure that it compared. */
export function examineRun(run: TrainedRun, arithmetic: TrainerArithmetic & { readonly rows: RowSelection }) {
  const { rows, advantageEpsilon } = arithmetic
  const references = new Map<number, ReferenceModel>()

  const pairsOf = (step: number, epsilon = advantageEpsilon): RowPair[] =>
    run.batches.filter((batch) => batch.step === step).flatMap((batch) => pairRows(run, batch, rows, epsilon))

  /** The model that sampled and trained a step; `null` if its weights are not available. */
  async function referenceOf(step: number): Promise<ReferenceModel | null> {
    const directory = run.weights[step - 1] ?? null
    if (directory === null) return null
    if (!references.has(step)) references.set(step, await readReferenceModel(directory))
    return references.get(step)!
  }

  const turns = () => run.episodes.flatMap(({ episode }) => episode.trajectories.flatMap((each) => each.turns))

  return {
    async rows() {
      for (const step of run.steps) expect(pairsOf(step).length, `rows of step ${step}`).toBe(rowsOfStep(rows))
      const isFork = (index: number, parent: number | null) => index === 2 && parent === 0
      expect(turns().filter(({ index, parent }) => isFork(index, parent)).length, 'forks').toBe(run.steps.length)
      const cut = turns().filter(({ finishReason, sampling }) => finishReason.unified === 'length' && sampling.maxTokens === cutTurn)
      expect(cut.length, 'turns that were cut').toBe(run.steps.length)
    },
    async gradients() {
      const gradients = gradientsOf(pairsOf(1))
      expect(gradients, 'derivatives that the trainer shows').not.toBeNull()
      expect(gradients!.outside, 'outside the mask').toBe(0)
      expect(gradients!.inside, 'inside the mask').toBeGreaterThan(0)
    },
    async emptyTurn() {
      for (const step of run.steps) {
        const turnsOfStep = run.episodes.flatMap(({ step: at, episode }) =>
          at === step ? episode.trajectories.flatMap(({ turns }) => turns.map((turn) => ({ rollout: episode.rollout, turn }))) : [],
        )
        const isEmpty = ({ parent, message, completionTokenIds }: Turn) =>
          parent === null && !message.content && completionTokenIds.length > 0
        const empty = turnsOfStep.filter(({ turn }) => isEmpty(turn))
        expect(empty.length, `first turns without a text in step ${step}`).toBeGreaterThan(0)
        for (const { rollout, turn } of empty) {
          const { expected, trained } = pairsOf(step).find((pair) => pair.expected.rollout === rollout)!
          const [from, to] = [turn.promptTokenIds.length, turn.promptTokenIds.length + turn.completionTokenIds.length]
          expect(trained.tokenIds.slice(from, to), 'tokens of the turn in its row').toEqual(Array.from(turn.completionTokenIds))
          expect(trained.mask.slice(from, to), 'their mask').toEqual(Array.from(turn.completionTokenIds, () => 1))
          expect(expected.turns.length, 'turns of the row').toBe(2)
        }
      }
    },
    async advantages() {
      const difference = advantageDifference(run.steps.flatMap((step) => pairsOf(step, commonEpsilon)))
      expect(difference, 'advantages').toBeLessThanOrEqual(limits.advantage)
      return difference
    },
    async logprobs() {
      const { trained } = logprobDifferences(pairsOf(1), (await referenceOf(1))!)
      expect(trained, 'logprobs that the trainer shows').not.toBeNull()
      expect(trained, 'logprobs').toBeLessThanOrEqual(limits.logprob)
      return trained
    },
    async loss() {
      const [batch, ...others] = run.batches.filter(({ step }) => step === 1)
      expect(others, 'further updates of the first step').toEqual([])
      const difference = Math.abs(batch!.loss! - expectedLoss(pairsOf(1), (await referenceOf(1))!, arithmetic))
      expect(difference, 'loss').toBeLessThanOrEqual(limits.loss)
      return difference
    },
    async direction() {
      const [before, after] = [run.weights[0]!, run.weights[1]!]
      const cosine = await updateDirection(pairsOf(1), { before, after }, arithmetic)
      expect(cosine, 'cosine of the update').toBeGreaterThanOrEqual(limits.cosine)
      return cosine
    },
    async gap() {
      let largest = 0
      for (const step of run.steps) {
        const reference = await referenceOf(step)
        const pairs = pairsOf(step)
        const [sampled, gap] = [reference && logprobDifferences(pairs, reference).sampled, gapOf(pairs)]
        expect(sampled ?? gap, 'something to compare with').not.toBeNull()
        largest = Math.max(largest, sampled ?? 0, gap ?? 0)
        expect(largest, `logprobs of step ${step}`).toBeLessThanOrEqual(limits.gap)
      }
      // The check finds the errors that it is for: a token in another's place, and an engine that was not given new weights.
      const [begin, next] = [await referenceOf(1), await referenceOf(2)]
      const power = (pairs: readonly RowPair[]) => logprobDifferences(pairs, begin!).sampled
      if (begin) expect(power(withShiftedToken(pairsOf(1))), 'with a token shifted').toBeGreaterThan(limits.gap)
      if (begin && next) expect(power(pairsOf(2)), 'with stale weights').toBeGreaterThan(limits.gap)
      return largest
    },
    async ledger() {
      const { sampled, trained, unexplained } = run.ledger
      expect(unexplained).toBe(0)
      const inBatches = run.batches.flatMap((batch) => batch.rows).flatMap(({ mask }) => mask.filter((bit) => bit === 1))
      expect(trained, 'trained tokens of the ledger').toBe(inBatches.length)
      const inEpisodes = turns().reduce((total, turn) => total + turn.completionTokenIds.length, 0)
      expect(sampled, 'sampled tokens of the ledger').toBeGreaterThanOrEqual(inEpisodes)
    },
  }
}
