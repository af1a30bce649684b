const prefix = 'aworld-train.1.'

/**
 * Seals reasoning in a form that clients hand back without reading it. It is not encrypted, because the policy's
 * own words go to its own agent.
 */
export const sealReasoning = (text: string): string => prefix + Buffer.from(text).toString('base64')

/** The text that `sealReasoning` sealed; `undefined` for anything else. */
export function openReasoning(sealed: unknown): string | undefined {
  if (typeof sealed !== 'string' || !sealed.startsWith(prefix)) return undefined
  return Buffer.from(sealed.slice(prefix.length), 'base64').toString()
}
