/** Draws how often things fail in one life, and how slow they are. A share of all lives has no failures of a kind. */
export function drawRates(random: () => number) {
  const often = (share: number, most: number) => (random() < share ? random() * most : 0)
  return {
    /** Seconds. */
    disk: random() < 0.3 ? 1 : 0.02,
    delay: random() < 0.5 ? random() * 10 : 0.1,
    /** Chances. Those of processes and connections hold every two seconds. */
    workerKilled: often(0.7, 0.04),
    allKilled: often(0.3, 0.03),
    workerStopped: often(0.5, 0.04),
    connectionLost: often(0.6, 0.05),
    coordinatorKilled: often(0.6, 0.01),
    coordinatorStopped: often(0.3, 0.02),
    killedAtCommit: often(0.5, 0.04),
    mislaid: often(0.3, 0.2),
    fails: often(0.5, 0.4),
    cancels: often(0.5, 0.5),
    drains: often(0.4, 0.02),
    /** The coordinator has started its workers, and hears when their processes end. */
    launches: random() < 0.4,
    /** The first task ends every worker that runs it. */
    killer: random() < 0.3,
  }
}
