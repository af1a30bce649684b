import type { RunEvent, RunReport } from '@aworld-train/core'

/** The warnings of a run, for its report. */
export interface WarningTally {
  read(event: RunEvent): void
  warnings(): RunReport['warnings']
}

/** Messages of one kind that are kept. Further ones are only counted. */
const keptMessages = 5

/** Every process checks the configuration again, so the findings of the checks are counted once. */
const madeAgain: ReadonlySet<string> = new Set(['CONFIG_NOTE', 'CONFIG_WARNING'])

/** Continues from the warnings of `earlier` processes of the run. */
export function createWarningTally(earlier: RunReport['warnings'] = []): WarningTally {
  const kinds = new Map(structuredClone(earlier).flatMap((kind) => (madeAgain.has(kind.code) ? [] : [[kind.code, kind] as const])))
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
