/** Unix milliseconds with fractions. They follow the clock that the process started with, which nobody sets meanwhile. */
export function preciseNow(): number {
  return performance.timeOrigin + performance.now()
}
