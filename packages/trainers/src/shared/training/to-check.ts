import type { MachineCheck } from '@aworld-train/core'

/** Joins several findings to one line. Its level is that of the worst finding, and it contains all messages. */
export function toCheck(
  name: string,
  good: string,
  found: readonly { readonly level: 'error' | 'warning'; readonly message: string }[],
): MachineCheck {
  if (found.length === 0) return { name, level: 'ok', message: good }
  const level = found.some((each) => each.level === 'error') ? 'problem' : 'warning'
  return { name, level, message: [good, ...found.map(({ message }) => message)].filter(Boolean).join('\n') }
}
