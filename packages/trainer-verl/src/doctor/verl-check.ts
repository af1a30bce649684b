/** One line of the doctor's answer. A warning lets training go on. */
export interface VerlCheck {
  readonly name: string
  readonly level: 'ok' | 'warning' | 'problem'
  readonly message: string
}

/** One line for several findings: its level is that of the worst one, and it contains all messages. */
export function toCheck(
  name: string,
  good: string,
  found: readonly { readonly level: 'error' | 'warning'; readonly message: string }[],
): VerlCheck {
  if (found.length === 0) return { name, level: 'ok', message: good }
  const level = found.some((each) => each.level === 'error') ? 'problem' : 'warning'
  return { name, level, message: [good, ...found.map(({ message }) => message)].filter(Boolean).join('\n') }
}
