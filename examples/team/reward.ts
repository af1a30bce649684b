/** 1 for the right sum alone, 0 for anything else. Lead and readers share it. */
export function rightSum(_dataSource: string, solutionStr: string, groundTruth: unknown): number {
  return solutionStr.trim() === groundTruth ? 1 : 0
}
