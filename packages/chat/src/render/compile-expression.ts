import { type Filter, filterNamed } from './filters.ts'
import { attribute, member, slice } from './members.ts'
import { dictionaryMethods, isKnownMethod, listMethods, requireMethod, stringMethods } from './methods.ts'
import { numeric, operators } from './operators.ts'
import type { Evaluate, Frame, Scope } from './scope.ts'
import type * as Tree from './syntax-tree.ts'
import { testNamed } from './tests.ts'
import { Callable, Dictionary, Float, iterate, type Keywords, noKeywords, Tuple, toKey, truthy, typeName, type Value } from './values.ts'

/** Compiles an expression once. The result evaluates it in a frame. Throws SyntaxError that names an unsupported feature. */
export function compileExpression(node: Tree.Node, scope: Scope): Evaluate {
  const compile = compilers[node.type]
  if (!compile) throw new SyntaxError(`the expression ${node.type} is not supported`)
  return compile(node as never, scope)
}

const constant =
  (value: Value): Evaluate =>
  () =>
    value

const compilers: Readonly<Record<string, (node: never, scope: Scope) => Evaluate>> = {
  StringLiteral: ({ value }: Tree.Literal<string>) => constant(value),
  IntegerLiteral: ({ value }: Tree.Literal<number>) => constant(value),
  FloatLiteral: ({ value }: Tree.Literal<number>) => constant(new Float(value)),
  ArrayLiteral({ value }: Tree.Literal<readonly Tree.Node[]>, scope: Scope) {
    const items = value.map((item) => compileExpression(item, scope))
    return (frame) => items.map((item) => item(frame))
  },
  TupleLiteral({ value }: Tree.Literal<readonly Tree.Node[]>, scope: Scope) {
    const items = value.map((item) => compileExpression(item, scope))
    return (frame) => new Tuple(items.map((item) => item(frame)))
  },
  ObjectLiteral({ value }: Tree.Literal<ReadonlyMap<Tree.Node, Tree.Node>>, scope: Scope) {
    const entries = [...value].map(([key, entry]) => [compileExpression(key, scope), compileExpression(entry, scope)] as const)
    return (frame) => new Dictionary(entries.map(([key, entry]) => [toKey(key(frame)), entry(frame)]))
  },
  Identifier: ({ value }: Tree.Identifier, scope: Scope) => identifier(value, scope),
  MemberExpression: memberAccess,
  CallExpression: call,
  BinaryExpression: binary,
  UnaryExpression({ operator, argument }: Tree.Unary, scope: Scope) {
    const operand = compileExpression(argument, scope)
    if (operator.value === 'not') return (frame) => !truthy(operand(frame))
    const sign = operator.value === '-' ? -1 : 1
    return (frame) => signed(operand(frame), sign)
  },
  FilterExpression({ operand, filter }: Tree.Filtered, scope: Scope) {
    return filtered(compileExpression(operand, scope), filter, scope)
  },
  TestExpression({ operand, negate, test }: Tree.Tested, scope: Scope) {
    const check = testNamed(test.value)
    const value = compileExpression(operand, scope)
    return negate ? (frame) => !check(value(frame), []) : (frame) => check(value(frame), [])
  },
  SelectExpression({ lhs, test }: Tree.Selected, scope: Scope) {
    const [value, condition] = [compileExpression(lhs, scope), compileExpression(test, scope)]
    return (frame) => (truthy(condition(frame)) ? value(frame) : undefined)
  },
  Ternary({ condition, trueExpr, falseExpr }: Tree.Ternary, scope: Scope) {
    const [test, yes, no] = [condition, trueExpr, falseExpr].map((part) => compileExpression(part, scope)) as [Evaluate, Evaluate, Evaluate]
    return (frame) => (truthy(test(frame)) ? yes(frame) : no(frame))
  },
}

const named: Readonly<Record<string, Value>> = { true: true, false: false, none: null, True: true, False: false, None: null }

function identifier(name: string, scope: Scope): Evaluate {
  return Object.hasOwn(named, name) ? constant(named[name]) : scope.read(name)
}

function signed(value: Value, sign: number): Value {
  const number = numeric(value)
  if (number === null) throw new TypeError(`bad operand type for unary -: '${typeName(value)}'`)
  return value instanceof Float ? new Float(number * sign) : number * sign + 0
}

function binary(node: Tree.Binary, scope: Scope): Evaluate {
  const { operator, left, right } = node
  const first = compileExpression(left, scope)
  const second = compileExpression(right, scope)
  if (operator.value === '+' && isMarkup(node, scope)) return joinMarkup(first, isMarkup(left, scope), second, isMarkup(right, scope))
  switch (operator.value) {
    case 'and':
      return (frame) => {
        const value = first(frame)
        return truthy(value) ? second(frame) : value
      }
    case 'or':
      return (frame) => {
        const value = first(frame)
        return truthy(value) ? value : second(frame)
      }
    case '+':
      return (frame) => {
        const [a, b] = [first(frame), second(frame)]
        return typeof a === 'string' && typeof b === 'string' ? a + b : operators['+']!(a, b)
      }
  }
  if (!Object.hasOwn(operators, operator.value)) throw new SyntaxError(`the operator ${operator.value} is not supported`)
  const apply = operators[operator.value]!
  return (frame) => apply(first(frame), second(frame))
}

/** Whether an expression is text marked by the filter `safe`, also if `+` has joined it or a variable holds it. */
export function isMarkup(node: Tree.Node, scope: Scope): boolean {
  switch (node.type) {
    case 'FilterExpression':
      return filterName((node as Tree.Filtered).filter) === 'safe'
    case 'BinaryExpression': {
      const { operator, left, right } = node as Tree.Binary
      return operator.value === '+' && (isMarkup(left, scope) || isMarkup(right, scope))
    }
    case 'Ternary':
      return isMarkup((node as Tree.Ternary).trueExpr, scope) || isMarkup((node as Tree.Ternary).falseExpr, scope)
    case 'Identifier':
      return scope.isMarkup((node as Tree.Identifier).value)
    default:
      return false
  }
}

/** Joins texts. Text that is joined to text marked by `safe` gets escaped, even in a chat template. */
function joinMarkup(first: Evaluate, firstIsMarkup: boolean, second: Evaluate, secondIsMarkup: boolean): Evaluate {
  const text = (evaluate: Evaluate, isSafe: boolean) => (frame: Frame) => {
    const value = evaluate(frame)
    if (typeof value !== 'string') throw new TypeError(`can only join str, not ${typeName(value)}`)
    return isSafe ? value : value.replace(/[&<>'"]/g, (character) => entities[character]!)
  }
  const [before, after] = [text(first, firstIsMarkup), text(second, secondIsMarkup)]
  return (frame) => before(frame) + after(frame)
}

const entities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', "'": '&#39;', '"': '&#34;' }

function memberAccess({ object, property, computed }: Tree.Member, scope: Scope): Evaluate {
  const owner = compileExpression(object, scope)
  if (!computed) {
    if (property.type !== 'Identifier') {
      const index = compileExpression(property, scope)
      return (frame) => member(owner(frame), index(frame))
    }
    const name = (property as Tree.Identifier).value
    const plain = !isKnownMethod(name)
    return (frame) => {
      const value = owner(frame)
      return plain && value instanceof Dictionary ? value.get(name) : attribute(value, name)
    }
  }
  if (property.type === 'SliceExpression') {
    const { start, stop, step } = property as Tree.Slice
    const [from, to, by] = [start, stop, step].map((part) => (part ? compileExpression(part, scope) : constant(undefined)))
    return (frame) => slice(owner(frame), from!(frame), to!(frame), by!(frame))
  }
  const key = compileExpression(property, scope)
  return (frame) => member(owner(frame), key(frame))
}

type Arguments = (frame: Frame) => { readonly args: readonly Value[]; readonly keywords: Keywords }

/** Positional, keyword and spread arguments of a call. */
export function compileArguments(nodes: readonly Tree.Node[], scope: Scope): Arguments {
  const parts = nodes.map((node) => {
    const inner =
      node.type === 'KeywordArgumentExpression'
        ? (node as Tree.Keyword).value
        : 'argument' in node && node.type !== 'UnaryExpression'
          ? (node as Tree.Unary).argument
          : node
    return { node, value: compileExpression(inner, scope) }
  })
  if (parts.every(({ node, value }) => node.type !== 'KeywordArgumentExpression' && !node.type.endsWith('SpreadExpression') && value)) {
    const values = parts.map(({ value }) => value)
    return (frame) => ({ args: values.map((value) => value(frame)), keywords: noKeywords })
  }
  return (frame) => {
    const args: Value[] = []
    const keywords = new Map<string, Value>()
    for (const { node, value } of parts) {
      if (node.type === 'KeywordArgumentExpression') keywords.set((node as Tree.Keyword).key.value, value(frame))
      else if (node.type === 'SpreadExpression') args.push(...iterate(value(frame)))
      else if (node.type === 'KeywordSpreadExpression')
        for (const [key, entry] of value(frame) as Dictionary) keywords.set(String(key), entry)
      else args.push(value(frame))
    }
    return { args, keywords }
  }
}

function call({ callee, args }: Tree.Call, scope: Scope): Evaluate {
  const values = compileArguments(args, scope)
  if (callee.type === 'MemberExpression' && !(callee as Tree.Member).computed) {
    const { object, property } = callee as Tree.Member
    return methodCall(compileExpression(object, scope), (property as Tree.Identifier).value, values)
  }
  const target = compileExpression(callee, scope)
  const name = callee.type === 'Identifier' ? (callee as Tree.Identifier).value : 'the value'
  return (frame) => {
    const { args, keywords } = values(frame)
    return invoke(target(frame), name, args, keywords)
  }
}

function methodCall(owner: Evaluate, name: string, values: Arguments): Evaluate {
  requireMethod(name)
  const ofString = Object.hasOwn(stringMethods, name) ? stringMethods[name] : undefined
  const ofDictionary = Object.hasOwn(dictionaryMethods, name) ? dictionaryMethods[name] : undefined
  const ofList = Object.hasOwn(listMethods, name) ? listMethods[name] : undefined
  return (frame) => {
    const value = owner(frame)
    const { args, keywords } = values(frame)
    if (ofString && typeof value === 'string') return ofString(value, args, keywords)
    if (ofDictionary && value instanceof Dictionary) return ofDictionary(value, args, keywords)
    if (ofList && Array.isArray(value)) return ofList(value, args, keywords)
    return invoke(attribute(value, name), name, args, keywords)
  }
}

function invoke(target: Value, name: string, args: readonly Value[], keywords: Keywords): Value {
  if (target instanceof Callable) return target.call(args, keywords)
  if (target === undefined) throw new Error(`'${name}' is undefined`)
  throw new TypeError(`'${typeName(target)}' object is not callable`)
}

function filterName(filter: Tree.Identifier | Tree.Call): string {
  return filter.type === 'Identifier' ? filter.value : (filter.callee as Tree.Identifier).value
}

/** Compiles a filter on a value. */
export function filtered(operand: Evaluate, filter: Tree.Identifier | Tree.Call, scope: Scope): Evaluate {
  const apply: Filter = filterNamed(filterName(filter))
  if (filter.type === 'Identifier') return (frame) => apply(operand(frame), [], noKeywords)
  checkNames(filter)
  const values = compileArguments(filter.args, scope)
  return (frame) => {
    const value = operand(frame)
    const { args, keywords } = values(frame)
    return apply(value, args, keywords)
  }
}

const takesTest: Readonly<Record<string, number>> = { select: 0, reject: 0, selectattr: 1, rejectattr: 1 }

/** Looks up a filter or test named in an argument when the template is read, not when it runs. */
function checkNames(filter: Tree.Call): void {
  const name = filterName(filter)
  const at = name === 'map' ? 0 : takesTest[name]
  const argument = at === undefined ? undefined : filter.args[at]
  if (argument?.type !== 'StringLiteral') return
  const { value } = argument as Tree.Literal<string>
  if (name === 'map') filterNamed(value)
  else testNamed(value)
}
