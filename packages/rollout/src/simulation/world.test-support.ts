import { drawRates } from './draw-rates.test-support.ts'
import type { Invariant, PlantedBug } from './planted-bugs.test-support.ts'
import { createRandom, createVirtualTime } from './virtual-time.test-support.ts'

/** Time after which nothing fails any more, in seconds. */
export const healSeconds = 300
/** How long a worker may be silent, in seconds, and how long it may be without a connection. */
export const leaseSeconds = 30
export const graceSeconds = 15
/** How long a cancelled agent may go on, in seconds. */
export const stopSeconds = 5
/** Rollouts that a worker may have at once. */
export const slots = 3

/** State that all parts of a simulated life share: time in seconds, chance, faults, and what was seen. */
export type World = ReturnType<typeof createWorld>

export function createWorld(seed: number, bug: PlantedBug | null) {
  const random = createRandom(seed)
  const time = createVirtualTime()
  const states: Record<string, number> = {}
  const notes: string[] = []
  let broken: Invariant | null = null
  const rates = drawRates(random)
  const isFaulty = () => time.now() < healSeconds
  function reach(state: string): void {
    states[state] = (states[state] ?? 0) + 1
  }

  return {
    ...time,
    bug,
    random,
    rates,
    /** Alters what connections carry as the planted bug does. */
    alter: bug?.frames?.() ?? ((frame: string) => frame),
    isFaulty,
    /** Longest delay of a message, in seconds. */
    latency: () => (isFaulty() ? rates.delay : 0.1),
    /** Whether a message is lost though its connection holds. */
    isMislaid(frame: Buffer): boolean {
      const isLost = isFaulty() && rates.mislaid > 0 && frame.includes('"type":"assign"') && random() < rates.mislaid
      if (isLost) reach('assignment lost on its way')
      return isLost
    },
    /** How often each named state was reached. */
    states,
    reach,
    must(holds: boolean, invariant: Invariant) {
      if (!holds) broken ??= invariant
    },
    /** What a person wants to know of a broken life. */
    notes,
    note: (text: string) => void notes.push(`${time.now().toFixed(3)} ${text}`),
    /** The first invariant that was broken. */
    broken: () => broken,
  }
}
