import { createHash } from 'node:crypto'

/** JSON text that does not depend on the order of keys. As in JSON, `undefined` members are left out. */
export function stableStringify(value: unknown): string {
  if (typeof value === 'bigint') return value.toString()
  if (value === null || typeof value !== 'object') return JSON.stringify(value) ?? 'null'
  if (value instanceof Date) return JSON.stringify(value)
  if (Array.isArray(value)) return `[${value.map(stableStringify).join(',')}]`
  const members = Object.entries(value)
    .filter(([, member]) => member !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
  return `{${members.map(([key, member]) => `${JSON.stringify(key)}:${stableStringify(member)}`).join(',')}}`
}

/** 64 hexadecimal digits: SHA-256 of `stableStringify`. */
export function stableHash(value: unknown): string {
  return createHash('sha256').update(stableStringify(value)).digest('hex')
}

/** The hash of a task over everything that the agent and its tools can see of it. A text equals one message of the user. */
export function taskHash(task: {
  readonly input: unknown
  readonly data: unknown
  /** Files by their names in the workspace, with the hashes of their bytes. */
  readonly files?: readonly { readonly name: string; readonly sha256: string | null }[] | undefined
  readonly setup?: unknown
}): string {
  const input = typeof task.input === 'string' ? [{ role: 'user', content: task.input }] : task.input
  return stableHash({ input, data: task.data, files: task.files?.length ? task.files : undefined, setup: task.setup })
}
