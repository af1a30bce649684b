import type { ScriptNode } from 'just-bash'

/** The simulation makes no more words of one range, and does not report that some are missing. */
const mostWords = 10_000

interface Range {
  readonly type: 'Range'
  readonly start: string | number
  readonly end: string | number
  readonly step?: number
}

/** Throws for a script whose braces expand to more words than the simulation makes. */
export function refuseCut(script: ScriptNode): void {
  JSON.stringify(script, (_, node: unknown) => {
    if (isRange(node) && Math.abs(Number(node.end) - Number(node.start)) / Math.max(1, Math.abs(node.step ?? 1)) >= mostWords)
      throw new Error(`{${node.start}..${node.end}} is more than ${mostWords} words, which the simulation does not make; use seq.`)
    return node
  })
}

const isRange = (node: unknown): node is Range => (node as Partial<Range> | null)?.type === 'Range'
