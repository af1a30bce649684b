import type { RunEvent, RunReport } from '@aworld-train/protocol'

/** The warnings of a run, for its report. */
export interface WarningTally {
  read(event: RunEvent): void
  warnings(): RunReport['warnings']
}

/** Messages of one kind that are kept; further ones are counted. */
const keptMessages = 5

/** Every process warns about the configuration again, so these warnings are counted once. */
const madeAgain = 'CONFIG_NOTE'

/** Goes on from the warnings of `earlier` processes of the run. */
export function createWarningTally(earlier: RunReport['warnings'] = []): WarningTally {
  const kinds = new Map(structuredClone(earlier).flatMap((kind) => (kind.code === madeAgain ? [] : [[kind.code, kind] as const])))
  return {
    read(event) {
      if (event.type !== 'warning-raised') return
      const { code, message } = event
      const kind = kinds.get(code) ?? { code, count: 0, messages: [] }
      kinds.set(code, kind)
      kind.count += 1
      if (kind.messages.length < keptMessages) kind.messages.push(message)
    },
    warnings: () => structuredClone([...kinds.values()]),
  }
}
