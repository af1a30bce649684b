/**
 * Unix milliseconds with fractions. They follow the clock at the start of the process, and later changes of the clock do not affect them.
 */
export function preciseNow(): number {
  return performance.timeOrigin + performance.now()
}
