import { errorMessage, TrainError } from '@aworld-train/core'

/** Collects the problems of a check. The check continues after each, so that the user sees all at once. */
export interface ProblemCollection {
  /** Resolves to `undefined` if the work threw. */
  attempt<T>(work: () => T | Promise<T>): Promise<T | undefined>
  add(problem: unknown): void
  /** Whether there is a problem so far. */
  any(): boolean
  /** Throws the only problem as it is, or CONFIG_INVALID with all of them. */
  throwAny(): void
}

export function collectProblems(): ProblemCollection {
  const problems: unknown[] = []
  return {
    async attempt(work) {
      try {
        return await work()
      } catch (problem) {
        problems.push(problem)
        return undefined
      }
    },
    add: (problem) => void problems.push(problem),
    any: () => problems.length > 0,
    throwAny() {
      if (problems.length > 0) throw joinProblems(problems)
    },
  }
}

function joinProblems(problems: readonly unknown[]): TrainError {
  if (problems.length === 1 && problems[0] instanceof TrainError) return problems[0]
  const messages = problems.map(errorMessage)
  return new TrainError('CONFIG_INVALID', messages.join('\n'), { cause: new AggregateError(problems), details: { problems: messages } })
}
