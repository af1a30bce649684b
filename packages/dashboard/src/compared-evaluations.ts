import type { EvaluationSummary } from '@aworld-train/core'

/**
 * The evaluations that show the effect of training: the first and the last at the training temperature, and the greedy
 * ones, of the split with most tasks.
 */
export function comparedEvaluations(evaluations: readonly EvaluationSummary[]) {
  const largest = [...evaluations].sort((a, b) => Number(b.split === 'test') - Number(a.split === 'test') || b.tasks - a.tasks)[0]
  const ofSplit = evaluations.filter(({ split }) => split === largest?.split)
  const pair = (list: readonly EvaluationSummary[]) => {
    const sorted = [...list].sort((a, b) => a.step - b.step)
    const [first, last] = [sorted[0] ?? null, sorted.at(-1) ?? null]
    return { before: first, after: last && first && last.step > first.step ? last : null }
  }
  const isGreedy = ({ name }: EvaluationSummary) => name.startsWith('greedy')
  return { split: largest?.split ?? null, ...pair(ofSplit.filter((each) => !isGreedy(each))), greedy: pair(ofSplit.filter(isGreedy)) }
}
