declare module 'turndown' {
  /** The parts of a node that rules use. */
  export interface TurndownNode {
    readonly nodeName: string
    readonly textContent: string
    getAttribute(name: string): string | null
    querySelectorAll(selector: string): Iterable<TurndownNode>
    closest(selector: string): TurndownNode | null
  }
  interface Rule {
    readonly filter: string | readonly string[] | ((node: TurndownNode) => boolean)
    replacement(content: string, node: TurndownNode): string
  }
  export default class TurndownService {
    constructor(options?: Readonly<Record<string, string>>)
    addRule(key: string, rule: Rule): this
    remove(filter: readonly string[]): this
    turndown(node: unknown): string
  }
}
