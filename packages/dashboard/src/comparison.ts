import type { EvaluationComparison } from '@aworld-train/core'
import { toTrainError } from '@aworld-train/core'
import { compareEvaluations } from '@aworld-train/training'
import type { FolderClient } from './folder-client.ts'

/** Two evaluations of a dashboard, task by task, or the reason why they cannot be compared. */
export type RunComparison =
  | { readonly comparison: EvaluationComparison; readonly problem: null }
  | { readonly comparison: null; readonly problem: string }

/** Compares the first of two runs with the second, as `eval compare` does. */
export function compareRuns(first: FolderClient, second: FolderClient): RunComparison {
  try {
    return { comparison: compareEvaluations(first.compared(), second.compared()), problem: null }
  } catch (error) {
    return { comparison: null, problem: toTrainError(error, 'STORE_FAILED').message }
  }
}
