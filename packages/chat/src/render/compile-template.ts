import { assignedNames, compileTarget, targetNames } from './bindings.ts'
import { compileArguments, compileExpression, filtered, isMarkup } from './compile-expression.ts'
import { pythonString } from './python-text.ts'
import { type Evaluate, Frame, type Run, Scope } from './scope.ts'
import type * as Tree from './syntax-tree.ts'
import { Callable, iterate, type Keywords, Loop, truthy, type Value } from './values.ts'

/** Prints a statement's text. */
type Execute = (frame: Frame) => string

export interface TemplateProgram {
  /**
   * Returns the text in pieces: one for each turn of an outermost loop, and those between them. Throws RenderingTooLong if they
   * have more than `maxCharacters`.
   */
  run(variables: ReadonlyMap<string, Value>, maxCharacters?: number): string[]
}

/** Thrown to end a rendering early. */
export class RenderingTooLong extends Error {
  /** Number of characters so far. */
  readonly characters: number

  constructor(characters: number, maxCharacters: number) {
    super(`the text has more than ${maxCharacters} characters`)
    this.characters = characters
  }
}

/** The printed text in pieces. */
class Pieces {
  readonly texts: string[] = []
  readonly #maxCharacters: number
  #characters = 0

  constructor(maxCharacters: number) {
    this.#maxCharacters = maxCharacters
  }

  add(text: string): void {
    if (text === '') return
    this.texts.push(text)
    this.#characters += text.length
    if (this.#characters > this.#maxCharacters) throw new RenderingTooLong(this.#characters, this.#maxCharacters)
  }
}

/** Compiles the statements of a parsed template into functions, once. Throws SyntaxError that names an unsupported feature. */
export function compileTemplateProgram(body: readonly Tree.Node[]): TemplateProgram {
  const scope = new Scope(null)
  const emit = compilePieces(body, scope)
  return {
    run(variables, maxCharacters = Number.POSITIVE_INFINITY) {
      const run: Run = { signal: 'none' }
      const frame = new Frame(scope.names.size, null, run)
      for (const [name, value] of variables) {
        const slot = scope.names.get(name)
        if (slot !== undefined) frame.slots[slot] = value
      }
      const pieces = new Pieces(maxCharacters)
      emit(frame, pieces)
      return pieces.texts
    },
  }
}

/** Adds a statement's text to the pieces of the whole. */
type Emit = (frame: Frame, pieces: Pieces) => void

function compilePieces(body: readonly Tree.Node[], scope: Scope): Emit {
  if (body.some(interrupts)) return whole(compileBlock(body, scope))
  const parts = body.filter(({ type }) => type !== 'Comment').map((node) => compilePiece(node, scope))
  return (frame, pieces) => {
    for (const part of parts) part(frame, pieces)
  }
}

function compilePiece(node: Tree.Node, scope: Scope): Emit {
  if (node.type === 'For') return compileLoop(node as Tree.For, scope)
  if (node.type !== 'If') return whole(compileStatement(node, scope))
  const { test, body, alternate } = node as Tree.If
  const condition = compileExpression(test, scope)
  const [yes, no] = [compilePieces(body, scope), compilePieces(alternate, scope)]
  return (frame, pieces) => (truthy(condition(frame)) ? yes(frame, pieces) : no(frame, pieces))
}

const whole =
  (execute: Execute): Emit =>
  (frame, pieces) =>
    pieces.add(execute(frame))

const silent: Execute = () => ''

function compileBlock(body: readonly Tree.Node[], scope: Scope): Execute {
  const parts = body.filter(({ type }) => type !== 'Comment').map((node) => compileStatement(node, scope))
  if (parts.length === 0) return silent
  if (parts.length === 1) return parts[0]!
  if (!body.some(interrupts)) {
    return (frame) => {
      let text = ''
      for (const part of parts) text += part(frame)
      return text
    }
  }
  return (frame) => {
    let text = ''
    for (const part of parts) {
      text += part(frame)
      if (frame.run.signal !== 'none') break
    }
    return text
  }
}

/** Whether a node contains a `break` or `continue` that acts on a loop around it. */
function interrupts(node: Tree.Node): boolean {
  if (node.type === 'Break' || node.type === 'Continue') return true
  if (node.type !== 'If') return false
  const { body, alternate } = node as Tree.If
  return [...body, ...alternate].some(interrupts)
}

function compileStatement(node: Tree.Node, scope: Scope): Execute {
  switch (node.type) {
    case 'StringLiteral': {
      const { value } = node as Tree.Literal<string>
      return () => value
    }
    case 'If':
      return compileIf(node as Tree.If, scope)
    case 'For': {
      const emit = compileLoop(node as Tree.For, scope)
      return (frame) => {
        const pieces = new Pieces(Number.POSITIVE_INFINITY)
        emit(frame, pieces)
        return joined(pieces.texts)
      }
    }
    case 'Set':
      return compileSet(node as Tree.SetNode, scope)
    case 'Macro':
      return compileMacro(node as Tree.Macro, scope)
    case 'CallStatement':
      return compileCallBlock(node as Tree.CallBlock, scope)
    case 'FilterStatement':
      return compileFilterBlock(node as Tree.FilterBlock, scope)
    case 'Break':
    case 'Continue': {
      const signal = node.type === 'Break' ? 'break' : 'continue'
      return (frame) => {
        frame.run.signal = signal
        return ''
      }
    }
  }
  const value = compileExpression(node, scope)
  return (frame) => {
    const result = value(frame)
    return typeof result === 'string' ? result : pythonString(result)
  }
}

function compileIf({ test, body, alternate }: Tree.If, scope: Scope): Execute {
  const condition = compileExpression(test, scope)
  const [yes, no] = [compileBlock(body, scope), compileBlock(alternate, scope)]
  return (frame) => (truthy(condition(frame)) ? yes(frame) : no(frame))
}

/** Compiles a block with a scope of its own. Variables that it sets are not visible outside. */
function inner(body: readonly Tree.Node[], outer: Scope, names: readonly string[] = []): { scope: Scope; execute: Execute } {
  const scope = new Scope(outer)
  for (const name of [...names, ...assignedNames(body)]) scope.slot(name)
  return { scope, execute: compileBlock(body, scope) }
}

function compileSet({ assignee, value, body }: Tree.SetNode, scope: Scope): Execute {
  const source: Evaluate = value === null ? captured(body, scope) : compileExpression(value, scope)
  const bind = compileTarget(assignee as Tree.Target, scope)
  if (value !== null && isMarkup(value, scope)) for (const name of targetNames(assignee as Tree.Target)) scope.addMarkup(name)
  return (frame) => {
    bind(frame, source(frame))
    return ''
  }
}

/** The text that a block prints, as a value. */
function captured(body: readonly Tree.Node[], outer: Scope): Evaluate {
  const { scope, execute } = inner(body, outer)
  return (frame) => execute(new Frame(scope.names.size, frame, frame.run))
}

function joined(pieces: readonly string[]): string {
  let text = ''
  for (const piece of pieces) text += piece
  return text
}

/** Compiles a loop, of which each turn is a piece. */
function compileLoop({ loopvar, iterable, body, defaultBlock }: Tree.For, outer: Scope): Emit {
  const { lhs, test } = iterable.type === 'SelectExpression' ? (iterable as Tree.Selected) : { lhs: iterable, test: null }
  const source = compileExpression(lhs, outer)
  const filterScope = new Scope(outer)
  const bindForTest = compileTarget(loopvar, filterScope)
  const passes = test === null ? null : compileExpression(test, filterScope)
  const { scope, execute } = inner(body, outer, [...targetNames(loopvar), 'loop'])
  const [bind, bindLoop] = [compileTarget(loopvar, scope), scope.write('loop')]
  const otherwise = captured(defaultBlock, outer)
  return (frame, pieces) => {
    const { run } = frame
    let items = iterate(source(frame))
    if (passes) {
      items = items.filter((item) => {
        const trial = new Frame(filterScope.names.size, frame, run)
        bindForTest(trial, item)
        return truthy(passes(trial))
      })
    }
    const loop = new Loop(items)
    // jinja2 prints the else block unless a turn of the loop has reached its end.
    let isElse = defaultBlock.length > 0
    for (let index = 0; index < items.length; index += 1) {
      loop.index0 = index
      const turn = new Frame(scope.names.size, frame, run)
      bindLoop(turn, loop)
      bind(turn, items[index])
      pieces.add(execute(turn))
      if (run.signal === 'none') {
        isElse = false
        continue
      }
      const stops = run.signal === 'break'
      run.signal = 'none'
      if (stops) break
    }
    if (isElse) pieces.add(otherwise(frame) as string)
  }
}

interface Parameters {
  readonly scope: Scope
  readonly execute: Execute
  fill(frame: Frame, args: readonly Value[], keywords: Keywords, what: string): void
}

function compileParameters(parameters: readonly (Tree.Identifier | Tree.Keyword)[], body: readonly Tree.Node[], outer: Scope): Parameters {
  const names = parameters.map((parameter) => (parameter.type === 'Identifier' ? parameter.value : parameter.key.value))
  const { scope, execute } = inner(body, outer, [...names, 'caller'])
  const bind = names.map((name) => scope.write(name))
  const defaults = parameters.map((parameter) => (parameter.type === 'Identifier' ? null : compileExpression(parameter.value, scope)))
  const bindCaller = scope.write('caller')
  return {
    scope,
    execute,
    fill(frame, args, keywords, what) {
      if (args.length > names.length) throw new TypeError(`${what} takes not more than ${names.length} argument(s)`)
      for (const name of keywords.keys()) {
        if (name !== 'caller' && !names.includes(name)) throw new TypeError(`${what} takes no keyword argument '${name}'`)
      }
      bindCaller(frame, keywords.get('caller'))
      for (const [index, name] of names.entries()) {
        if (index < args.length) bind[index]!(frame, args[index])
        else bind[index]!(frame, keywords.has(name) ? keywords.get(name) : defaults[index]?.(frame))
      }
    },
  }
}

function compileMacro({ name, args, body }: Tree.Macro, outer: Scope): Execute {
  const bind = outer.write(name.value)
  const { scope, execute, fill } = compileParameters(args, body, outer)
  return (frame) => {
    bind(
      frame,
      new Callable((positional, keywords) => {
        const inside = new Frame(scope.names.size, frame, frame.run)
        fill(inside, positional, keywords, `macro '${name.value}'`)
        return execute(inside)
      }),
    )
    return ''
  }
}

function compileCallBlock({ call, callerArgs, body }: Tree.CallBlock, outer: Scope): Execute {
  const target = compileExpression(call.callee, outer)
  const values = compileArguments(call.args, outer)
  const { scope, execute, fill } = compileParameters(callerArgs ?? [], body, outer)
  return (frame) => {
    const caller = new Callable((positional, keywords) => {
      const inside = new Frame(scope.names.size, frame, frame.run)
      fill(inside, positional, keywords, 'caller')
      return execute(inside)
    })
    const { args, keywords } = values(frame)
    const macro = target(frame)
    if (!(macro instanceof Callable)) throw new TypeError('the call block names no macro')
    return pythonString(macro.call(args, new Map([...keywords, ['caller', caller]])))
  }
}

function compileFilterBlock({ filter, body }: Tree.FilterBlock, scope: Scope): Execute {
  const value = filtered(captured(body, scope), filter, scope)
  return (frame) => pythonString(value(frame))
}
