import type { RunEvent } from '@aworld-train/core'
import type { Findings } from './named-dataset.ts'

/** Emits the findings of a run's checks, each sentence once. Every process of the run emits them again. */
export function raiseFindings(emit: (event: RunEvent) => void, { notes, warnings }: Findings): void {
  for (const [code, messages] of [
    ['CONFIG_WARNING', warnings],
    ['CONFIG_NOTE', notes],
  ] as const)
    for (const message of new Set(messages)) emit({ type: 'warning-raised', at: Date.now(), code, message })
}
