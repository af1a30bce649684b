import { compare, equal, numeric, operators } from './operators.ts'
import { pythonString } from './python-text.ts'
import { Callable, Dictionary, Float, Iteration, Tuple, typeName, type Value } from './values.ts'

export type Test = (value: Value, args: readonly Value[]) => boolean

function numberFor(value: Value, test: string): number {
  const number = numeric(value)
  if (number === null) throw new TypeError(`the test ${test} needs a number, not ${typeName(value)}`)
  return number
}

const sequence: Test = (value) =>
  typeof value === 'string' || Array.isArray(value) || value instanceof Tuple || value instanceof Dictionary || value === undefined
const same: Test = (value, [other]) => equal(value, other)
const contains: Test = (value, [container]) => operators['in']!(value, container) as boolean

/** Tests of jinja2 by name, as used after `is` and in `select`. */
const tests: Readonly<Record<string, Test>> = {
  defined: (value) => value !== undefined,
  undefined: (value) => value === undefined,
  none: (value) => value === null,
  boolean: (value) => typeof value === 'boolean',
  true: (value) => value === true,
  false: (value) => value === false,
  string: (value) => typeof value === 'string',
  number: (value) => numeric(value) !== null,
  integer: (value) => typeof value === 'number' || typeof value === 'bigint',
  float: (value) => value instanceof Float,
  mapping: (value) => value instanceof Dictionary,
  sequence,
  iterable: (value) => sequence(value, []) || value instanceof Iteration,
  callable: (value) => value instanceof Callable || value === undefined,
  odd: (value) => Math.abs(numberFor(value, 'odd')) % 2 === 1,
  even: (value) => numberFor(value, 'even') % 2 === 0,
  divisibleby: (value, [by]) => numberFor(value, 'divisibleby') % numberFor(by, 'divisibleby') === 0,
  lower: (value) => isCase(pythonString(value), 'lower'),
  upper: (value) => isCase(pythonString(value), 'upper'),
  sameas: (value, [other]) => value === other,
  in: contains,
  eq: same,
  equalto: same,
  '==': same,
  ne: (value, args) => !same(value, args),
  '!=': (value, args) => !same(value, args),
  lt: (value, [other]) => compare('<', value, other) < 0,
  le: (value, [other]) => compare('<=', value, other) <= 0,
  gt: (value, [other]) => compare('>', value, other) > 0,
  ge: (value, [other]) => compare('>=', value, other) >= 0,
}

function isCase(text: string, which: 'lower' | 'upper'): boolean {
  const [lower, upper] = [text.toLowerCase(), text.toUpperCase()]
  return lower !== upper && text === (which === 'lower' ? lower : upper)
}

const unsupported = new Set(['escaped', 'filter', 'test', 'namespace'])

/**
 * Finds a test. Throws SyntaxError for a test of jinja2 that is unsupported. A test that jinja2 lacks throws when it is reached, as there.
 */
export function testNamed(name: string): Test {
  if (Object.hasOwn(tests, name)) return tests[name]!
  if (unsupported.has(name)) throw new SyntaxError(`the test ${name} is not supported`)
  return () => {
    throw new Error(`No test named '${name}'.`)
  }
}
