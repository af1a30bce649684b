import { createWaitingLine } from '@aworld-train/core'

/** Lets work begin as long as its total need stays within a budget. Waiting work keeps its order. */
export interface ByteBudget {
  run<Value>(need: number, work: () => Promise<Value>, signal: AbortSignal): Promise<Value>
}

/** Work that needs more than `total` runs alone. */
export function createByteBudget(total: number): ByteBudget {
  const line = createWaitingLine<number, void>(() => admit())
  let free = total
  function admit(): void {
    for (let need = line.first(); need !== undefined && need <= free; need = line.first()) {
      free -= need
      line.admit()
    }
  }
  return {
    async run(need, work, signal) {
      const share = Math.min(need, total)
      const turn = line.wait(share, signal)
      admit()
      await turn
      try {
        return await work()
      } finally {
        free += share
        admit()
      }
    },
  }
}
