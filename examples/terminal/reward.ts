/** 1 for the right number alone, 0 for anything else. */
export function exactAnswer(_dataSource: string, solutionStr: string, groundTruth: unknown): number {
  return solutionStr.trim() === groundTruth ? 1 : 0
}
