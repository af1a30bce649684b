/** A file of the workspace that gets another name. */
export interface Move {
  readonly from: string
  readonly to: string
}

/** A link of Playwright's to a file that it has written under a name with the time. */
const link = /^(- \[[^\]\n]*\]\()(\.playwright-mcp\/([a-z]+)-\d{4}-\d\d-\d\dT[\d-]+Z(\.\w+)?)\)$/gm

/** Names for the files that answers link, counted for each kind, so that a run repeats: `.playwright-mcp/page-1.yml`. */
export class OutputFiles {
  readonly #counts = new Map<string, number>()

  /** The answer with the names that its files get. */
  rename(answer: string): { readonly text: string; readonly moves: readonly Move[] } {
    const moves: Move[] = []
    const text = answer.replace(link, (_, before: string, from: string, kind: string, ending = '') => {
      const count = (this.#counts.get(kind + ending) ?? 0) + 1
      this.#counts.set(kind + ending, count)
      const to = `.playwright-mcp/${kind}-${count}${ending}`
      moves.push({ from, to })
      return `${before}${to})`
    })
    return { text, moves }
  }
}

const picture = /^- \[Screenshot[^\]\n]*\]\(([^)\n]+\.(png|jpe?g|webp))\)$/m

/** The picture that the answer of a screenshot links. */
export function pictureOf(answer: string): { readonly path: string; readonly mimeType: 'image/png' | 'image/jpeg' | 'image/webp' } | null {
  const [, path, ending] = picture.exec(answer) ?? []
  if (path === undefined) return null
  return { path, mimeType: ending === 'png' ? 'image/png' : ending === 'webp' ? 'image/webp' : 'image/jpeg' }
}

/** An answer without how long a request took, which differs from run to run. */
export function withoutDuration(answer: string): string {
  return answer.replace(/^ {4}duration: +\d+ms\n/gm, '')
}

/** What Playwright says of an error, without the names of its own parts. */
export function errorText(answer: string): string {
  return answer
    .replace(/^### Error\n(?:Error: )?/, '')
    .replaceAll('browserBackend.callTool: ', '')
    .trim()
}
