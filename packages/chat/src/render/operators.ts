import { compareCodePoints, pythonString } from './python-text.ts'
import { Dictionary, Float, iterate, Tuple, toKey, typeName, type Value } from './values.ts'

type Operator = (left: Value, right: Value) => Value

/** Binary operators other than `and` and `or`, as Python evaluates them. They throw where Python raises. */
export const operators: Readonly<Record<string, Operator>> = {
  '==': equal,
  '!=': (left, right) => !equal(left, right),
  '~': (left, right) => pythonString(left) + pythonString(right),
  in: (left, right) => contains(right, left),
  'not in': (left, right) => !contains(right, left),
  '+': add,
  '-': (left, right) => arithmetic('-', left, right, (a, b) => a - b),
  '*': multiply,
  '/': (left, right) => new Float(floatOf(arithmetic('/', left, right, (a, b) => a / nonZero(b)))),
  '//': (left, right) => arithmetic('//', left, right, (a, b) => Math.floor(a / nonZero(b))),
  '%': (left, right) => arithmetic('%', left, right, (a, b) => a - nonZero(b) * Math.floor(a / b)),
  '**': (left, right) => arithmetic('**', left, right, (a, b) => a ** b),
  '<': (left, right) => compare('<', left, right) < 0,
  '>': (left, right) => compare('>', left, right) > 0,
  '<=': (left, right) => compare('<=', left, right) <= 0,
  '>=': (left, right) => compare('>=', left, right) >= 0,
}

function add(left: Value, right: Value): Value {
  if (typeof left === 'string' && typeof right === 'string') return left + right
  if (Array.isArray(left) && Array.isArray(right)) return [...left, ...right]
  if (left instanceof Tuple && right instanceof Tuple) return new Tuple([...left.items, ...right.items])
  return arithmetic('+', left, right, (a, b) => a + b)
}

function multiply(left: Value, right: Value): Value {
  const [sequence, factor] = typeof right === 'string' || Array.isArray(right) ? [right, left] : [left, right]
  const times = factor instanceof Float ? null : numeric(factor)
  if (times !== null && typeof sequence === 'string') return sequence.repeat(Math.max(0, times))
  if (times !== null && Array.isArray(sequence)) return Array.from({ length: Math.max(0, times) }, () => sequence).flat()
  return arithmetic('*', left, right, (a, b) => a * b)
}

function arithmetic(operator: string, left: Value, right: Value, compute: (a: number, b: number) => number): Value {
  const a = numeric(left)
  const b = numeric(right)
  if (a === null || b === null) throw unsupported(operator, left, right)
  const value = compute(a, b)
  const isFloat = left instanceof Float || right instanceof Float
  return isFloat || !Number.isInteger(value) ? new Float(value) : value + 0
}

function floatOf(value: Value): number {
  return numeric(value) ?? 0
}

function nonZero(divisor: number): number {
  if (divisor === 0) throw new Error('division by zero')
  return divisor
}

/** The value as a number; `null` if it is none. True is 1, as in Python. */
export function numeric(value: Value): number | null {
  if (typeof value === 'number') return value
  if (value instanceof Float) return value.value
  return typeof value === 'boolean' || typeof value === 'bigint' ? Number(value) : null
}

/** Orders two values as Python does, by a number below, equal to or above zero. Throws where Python does. */
export function compare(operator: string, left: Value, right: Value): number {
  if (typeof left === 'string' && typeof right === 'string') return compareCodePoints(left, right)
  const a = numeric(left)
  const b = numeric(right)
  if (a !== null && b !== null) return a - b
  if ((Array.isArray(left) && Array.isArray(right)) || (left instanceof Tuple && right instanceof Tuple)) {
    const [first, second] = [iterate(left), iterate(right)]
    for (let index = 0; index < Math.min(first.length, second.length); index += 1) {
      if (!equal(first[index], second[index])) return compare(operator, first[index], second[index])
    }
    return first.length - second.length
  }
  throw unsupported(operator, left, right)
}

function unsupported(operator: string, left: Value, right: Value): TypeError {
  return new TypeError(`unsupported operand types for ${operator}: ${typeName(left)} and ${typeName(right)}`)
}

/** `==` of Python, by value for lists and dictionaries. None and undefined differ. */
export function equal(left: Value, right: Value): boolean {
  if (left === right) return true
  if (typeof left === 'string' || typeof right === 'string' || left === null || right === null) return false
  const [a, b] = [numeric(left), numeric(right)]
  if (a !== null && b !== null) return typeof left === 'bigint' || typeof right === 'bigint' ? exact(left) === exact(right) : a === b
  if (Array.isArray(left)) return Array.isArray(right) && equalItems(left, right)
  if (left instanceof Tuple) return right instanceof Tuple && equalItems(left.items, right.items)
  if (!(left instanceof Dictionary && right instanceof Dictionary)) return false
  return left.size === right.size && [...left].every(([key, value]) => right.has(key) && equal(value, right.get(key)))
}

function exact(value: Value): string {
  return String(value instanceof Float ? value.value : value)
}

function equalItems(left: readonly Value[], right: readonly Value[]): boolean {
  return left.length === right.length && left.every((item, index) => equal(item, right[index]))
}

function contains(container: Value, item: Value): boolean {
  if (typeof container === 'string') {
    if (typeof item !== 'string') throw new TypeError(`'in <string>' requires string as left operand, not ${typeName(item)}`)
    return container.includes(item)
  }
  if (container instanceof Dictionary) return container.has(toKey(item))
  return iterate(container).some((candidate) => equal(candidate, item))
}
