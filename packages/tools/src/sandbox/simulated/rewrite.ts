import { parse, type ScriptNode, type SimpleCommandNode, type StatementNode, type WordNode } from 'just-bash'
import { type ArithmeticExpression, exactArithmetic } from './arithmetic.ts'

type CommandNode = StatementNode['pipelines'][number]['commands'][number]
export type GroupNode = Extract<CommandNode, { type: 'Group' }>
type WordPart = WordNode['parts'][number]
type ArithmeticExpansion = Extract<WordPart, { type: 'ArithmeticExpansion' }>
type ArithmeticCommand = Extract<CommandNode, { type: 'ArithmeticCommand' }>
type CStyleFor = Extract<CommandNode, { type: 'CStyleFor' }>
type BraceItem = Extract<WordPart, { type: 'BraceExpansion' }>['items'][number]
type Node = StatementNode | CommandNode | ArithmeticExpansion | BraceItem

/** The simulation makes no more words of one range, and does not report that some are missing. */
const mostWords = 10_000

/** Builtins that the simulation lacks and that others cannot stand in for. Without them a script would go on as if they had worked. */
const absent: Readonly<Record<string, string>> = {
  trap: 'Run what is to happen at the end as a command of its own.',
  kill: 'Nothing runs in the background.',
  jobs: 'Nothing runs in the background.',
  bg: 'Nothing runs in the background.',
  fg: 'Nothing runs in the background.',
  disown: 'Nothing runs in the background.',
  umask: 'Use chmod.',
  ulimit: 'A command ends by its timeout.',
}

export interface Rewriting {
  /** Returns a command that runs the text of an `eval` when it is known. */
  readonly toEvaluation: (command: SimpleCommandNode) => CommandNode
  /** Returns a command that runs the text of the file that `source` names. */
  readonly toSourcing: (command: SimpleCommandNode) => CommandNode
}

/** Returns a script that answers as bash does where the simulation by itself would not. Throws where none can, and says what to do. */
export function rewrite(script: ScriptNode, rewriting: Rewriting): ScriptNode {
  const visit = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(visit)
    if (typeof value !== 'object' || value === null) return value
    const node = value as Node
    switch (node.type) {
      case 'Range':
        refuseCut(node)
        return node
      case 'Statement':
        if (node.background) throw new Error('"&" is not simulated: nothing runs in the background. Run one command after the other.')
        return visitFields(node)
      case 'SimpleCommand':
        return textOf(node.name) === '__let' ? visitArithmetic(fromMarked(node)) : visitCommand(visitFields(node))
      case 'ArithmeticExpansion':
        return visitExpansion(node)
      case 'ArithmeticCommand':
        return visitArithmetic(node)
      case 'Subshell':
        if (isMisread(node)) throw new Error('this "((…))" is not simulated. Use let "…".')
        return visitFields(node)
      case 'CStyleFor': {
        const [init, condition, update] = [node.init, node.condition, node.update].map((each) => each && exactInPlace(each)) as [
          CStyleFor['init'],
          CStyleFor['condition'],
          CStyleFor['update'],
        ]
        return { ...node, init, condition, update, body: visit(node.body), redirections: visit(node.redirections) }
      }
      default:
        return visitFields(node)
    }
  }
  const visitFields = <Value extends object>(node: Value): Value =>
    Object.fromEntries(Object.entries(node).map(([key, value]) => [key, visit(value)])) as Value

  function visitCommand(command: SimpleCommandNode): CommandNode {
    const name = textOf(command.name)
    if (name === 'let') return visitArithmetic(toArithmetic(command))
    if (name === 'eval' && command.args.length > 0) return rewriting.toEvaluation(command)
    // Arguments of a sourced file are the simulation's own to set.
    if ((name === 'source' || name === '.') && command.args.length === 1) return rewriting.toSourcing(command)
    if (name?.includes('/')) return { ...command, name: word({ type: 'Literal', value: '__run' }), args: [command.name!, ...command.args] }
    const remedy = name !== null && Object.hasOwn(absent, name) ? absent[name] : undefined
    if (remedy) throw new Error(`"${name}" is not simulated. ${remedy}`)
    return command
  }

  /** Values that have to be assigned before are assigned in a subshell, which prints the result. */
  function visitExpansion(node: ArithmeticExpansion): WordPart {
    const { expression, before, assigns } = exactArithmetic(node.expression.expression)
    const exact: ArithmeticExpansion = { ...node, expression: { type: 'ArithmeticExpression', expression } }
    if (before.length === 0) return exact
    if (assigns) throw new Error('an assignment beside "$(…)" within "$(( ))" is not simulated. Assign the value in a command before.')
    const print = parse('echo "$((0))"').statements
    const printed = print[0]!.pipelines[0]!.commands[0] as SimpleCommandNode
    const body = [
      ...assignments(before),
      { ...print[0]!, pipelines: [pipeline({ ...printed, args: [word({ type: 'DoubleQuoted', parts: [exact] })] })] },
    ]
    return { type: 'CommandSubstitution', body: { type: 'Script', statements: body }, legacy: false }
  }

  function visitArithmetic(node: ArithmeticCommand): CommandNode {
    const { expression, before } = exactArithmetic(node.expression.expression)
    const exact: ArithmeticCommand = { ...node, expression: { type: 'ArithmeticExpression', expression } }
    if (before.length === 0) return exact
    return { type: 'Group', body: [...assignments(before), statement({ ...exact, redirections: [] })], redirections: node.redirections }
  }

  const assignments = (before: ReturnType<typeof exactArithmetic>['before']) =>
    before.flatMap(({ name, text }) => (visit(parse(`${name}="${text}"`)) as ScriptNode).statements)

  return visit(script) as ScriptNode
}

function exactInPlace(node: ArithmeticExpression): ArithmeticExpression {
  const { expression, before } = exactArithmetic(node.expression)
  if (before.length > 0) throw new Error('"$(…)" within "for (( ))" is not simulated. Assign the value to a variable before.')
  return { type: 'ArithmeticExpression', expression }
}

/** Of a script whose text was not marked, the simulation takes `((x -= 1))` for a subshell in a subshell. */
function isMisread({ body }: Extract<CommandNode, { type: 'Subshell' }>): boolean {
  const outer = onlyCommand(body)
  const inner = outer?.type === 'Subshell' ? onlyCommand(outer.body) : null
  return inner?.type === 'SimpleCommand' && /^(?:[+*/%&|^<>=!]|-[^a-z])/.test(textOf(inner.args[0] ?? null) ?? '')
}

function onlyCommand([only, ...others]: readonly StatementNode[]): CommandNode | null {
  const [first, ...rest] = only?.pipelines ?? []
  return others.length + rest.length === 0 && first?.commands.length === 1 ? first.commands[0]! : null
}

function refuseCut({ start, end, step = 1 }: Extract<BraceItem, { type: 'Range' }>): void {
  if (Math.abs(Number(end) - Number(start)) / Math.max(1, Math.abs(step)) >= mostWords)
    throw new Error(`{${start}..${end}} is more than ${mostWords} words, which the simulation does not make. Use seq.`)
}

/** `let a b` is `((a, b))`. */
function toArithmetic({ args, redirections }: SimpleCommandNode): ArithmeticCommand {
  const text = args.map(textOf)
  if (text.length === 0 || text.includes(null)) throw new Error('this form of "let" is not simulated. Use (( )).')
  const [read] = parse(`: $((${text.join(',')}))`).statements
  return fromMarked({ ...(read!.pipelines[0]!.commands[0] as SimpleCommandNode), redirections })
}

/** `__let $((…))` is `((…))`. */
function fromMarked({ args, redirections }: SimpleCommandNode): ArithmeticCommand {
  const { expression } = args[0]!.parts[0] as ArithmeticExpansion
  return { type: 'ArithmeticCommand', expression, redirections }
}

/** The text of a word, with variables as they are named; null if it has other expansions. */
function textOf(of: WordNode | null): string | null {
  const text = of?.parts.map((part) => {
    switch (part.type) {
      case 'Literal':
      case 'SingleQuoted':
      case 'Escaped':
        return part.value
      case 'Glob':
        return part.pattern
      case 'DoubleQuoted':
        return textOf({ type: 'Word', parts: part.parts })
      case 'ParameterExpansion':
        return part.operation ? null : `\${${part.parameter}}`
      default:
        return null
    }
  })
  return text && !text.includes(null) ? text.join('') : null
}

const word = (...parts: WordPart[]): WordNode => ({ type: 'Word', parts })
const pipeline = (...commands: CommandNode[]) => ({ type: 'Pipeline' as const, commands, negated: false })
const statement = (command: CommandNode): StatementNode => ({
  type: 'Statement',
  pipelines: [pipeline(command)],
  operators: [],
  background: false,
})

/** Runs a command with its output in a file. The simulation puts the output of a command before its errors, so each has to be run alone. */
export function redirected(command: StatementNode, path: string): StatementNode {
  const { redirections } = parse(`: >>${path} 2>&1`).statements[0]!.pipelines[0]!.commands[0] as SimpleCommandNode
  return statement({ type: 'Group', body: [command], redirections })
}
