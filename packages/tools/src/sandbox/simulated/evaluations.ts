import { posix } from 'node:path'
import { type CommandContext, type CustomCommand, defineCommand, parse, type SimpleCommandNode, type StatementNode } from 'just-bash'
import { readScript } from './read-script.ts'
import type { GroupNode, Rewriting } from './rewrite.ts'

/** Runs the texts of `eval` and `source`, which are known only when they run. */
export class ShellEvaluations implements Rewriting {
  readonly #groups: { readonly group: GroupNode; readonly original: StatementNode[] }[] = []

  readonly commands: readonly CustomCommand[] = [
    this.#define('eval', async ([, ...words]) => words.join(' ')),
    this.#define('source', async ([, path = ''], { fs, cwd }) => {
      const text = await fs.readFile(posix.resolve(cwd, path)).catch(() => null)
      // What `return` ends is known to the simulation alone, which also says that there is no file.
      return text === null || /\breturn\b/.test(text) ? null : text
    }),
  ]

  toEvaluation(command: SimpleCommandNode): GroupNode {
    return this.#later('eval', command)
  }

  toSourcing(command: SimpleCommandNode): GroupNode {
    return this.#later('source', command)
  }

  /** `{ __eval 1 "text" && { …what __eval has put here…; }; }` */
  #later(name: string, command: SimpleCommandNode): GroupNode {
    const { args, redirections, assignments } = command
    const group: GroupNode = { type: 'Group', body: [], redirections: [] }
    const original = parse(':').statements
    original[0]!.pipelines[0]!.commands = [{ ...command, redirections: [] }]
    const { statements } = parse(`__${name} ${this.#groups.push({ group, original }) - 1} && :`)
    const { pipelines } = statements[0]!
    const fill = pipelines[0]!.commands[0] as SimpleCommandNode
    fill.args.push(...args)
    fill.assignments.push(...assignments)
    pipelines[1]!.commands[0] = group
    return { type: 'Group', body: statements, redirections }
  }

  /** Makes the command that fills a group with the text that `toText` returns, or with the command as it is. */
  #define(name: string, toText: (args: readonly string[], context: CommandContext) => Promise<string | null>): CustomCommand {
    return defineCommand(`__${name}`, async (args, context) => {
      const { group, original } = this.#groups[Number(args[0])]!
      try {
        const text = await toText(args, context)
        const read = text === null ? original : readScript(text, this).statements
        group.body = read.length > 0 ? read : parse(':').statements
        return { stdout: '', stderr: '', exitCode: 0 }
      } catch (error) {
        return { stdout: '', stderr: `bash: ${name}: ${error instanceof Error ? error.message : error}\n`, exitCode: 2 }
      }
    })
  }
}
