import type { WordNode } from 'just-bash'

type WordPart = WordNode['parts'][number]
export type ArithmeticExpression = Extract<WordPart, { type: 'ArithmeticExpansion' }>['expression']
type Expression = ArithmeticExpression['expression']
type Variable = Extract<Expression, { type: 'ArithVariable' }>
type Element = Extract<Expression, { type: 'ArithArrayElement' }>
type Operator = Extract<Expression, { type: 'ArithBinary' }>['operator']

/** The simulation computes in floating point, which is exact below this number. It reads every larger one as this one. */
const bound = Number.MAX_SAFE_INTEGER

export interface ExactArithmetic {
  readonly expression: Expression
  /** What has to be assigned to these variables before. Each is the inner text of `"$(…)"` or `"${…}"`. */
  readonly before: readonly { readonly name: string; readonly text: string }[]
  /** Whether it assigns variables of its own. */
  readonly assigns: boolean
}

/**
 * Returns an expression with the value that bash computes, or with an error. The simulation itself rounds above 2^53, has 32 bits for `<<`
 * and `&`, reads 010 of a variable as ten, and finds no function within `$(( ))`.
 */
export function exactArithmetic(expression: Expression): ExactArithmetic {
  const before: { name: string; text: string }[] = []
  let temporaries = 0
  let assigns = false

  /** Keeps a value in a variable, because reading an expression again would repeat its effects. */
  const keep = (value: Expression, use: (kept: Variable) => Expression): Expression => {
    const kept = variable(`__kept${++temporaries}`)
    return sequence(assign(kept.name, value), use(kept))
  }
  const checked = (value: Expression) => keep(value, (kept) => inBound(kept))

  const readVariable = (name: string, value: Expression): Expression => {
    // Of "010", `number` is 8 and `decimal` ten; of "08" only `decimal` is there; of an expression neither is its value.
    const number: Expression = { type: 'ArithDynamicNumber', prefix: name, suffix: '' }
    const decimal: Expression = { type: 'ArithBracedExpansion', content: name }
    const octal = choose(binary('<', number, value), number, failure(`${name}: value too great for base`))
    const isOctal = binary('&&', binary('>', value, zero), binary('==', decimal, value))
    return inBound(value, choose(binary('==', number, value), value, choose(isOctal, octal, value)))
  }

  const hoist = (text: string): Expression => {
    const name = `__before${before.length + 1}`
    before.push({ name, text })
    return readVariable(name, variable(name))
  }

  const visitElement = (element: Element): Element =>
    element.index && element.stringKey === undefined && element.index.type !== 'ArithVariable'
      ? { ...element, index: visit(element.index) }
      : element

  const shiftLeft = (left: Expression, right: Expression) => binary('*', left, power(right))
  const shiftRight = (left: Expression, right: Expression) =>
    keep(left, (value) => keep(power(right), (divisor) => floorDivision(value, divisor)))
  /** Joins both halves of 32 bits, as the operators of the simulation have no more. */
  const bitwise = (operator: '&' | '|' | '^', left: Expression, right: Expression) =>
    keep(left, (a) =>
      keep(right, (b) =>
        binary(
          '+',
          binary('*', binary(operator, floorDivision(a, half), floorDivision(b, half)), half),
          floorRemainder(binary(operator, floorRemainder(a, half), floorRemainder(b, half)), half),
        ),
      ),
    )

  function operate(operator: Operator, left: Expression, right: Expression): Expression {
    switch (operator) {
      case '+':
      case '-':
      case '*':
      case '**':
        return checked(binary(operator, left, right))
      case '<<':
        return checked(shiftLeft(left, right))
      case '>>':
        return shiftRight(left, right)
      case '&':
      case '|':
      case '^':
        return bitwise(operator, left, right)
      default:
        return binary(operator, left, right)
    }
  }

  function visit(node: Expression): Expression {
    switch (node.type) {
      case 'ArithNumber':
        return node.value >= bound ? beyond : node
      case 'ArithVariable':
        return readVariable(node.name, node)
      case 'ArithSpecialVar':
        return inBound(node)
      case 'ArithArrayElement':
        return checked(visitElement(node))
      case 'ArithBracedExpansion':
        return /^\w+$/.test(node.content) ? readVariable(node.content, variable(node.content)) : hoist(`\${${node.content}}`)
      case 'ArithCommandSubst':
        return hoist(`$(${node.command})`)
      case 'ArithBinary':
        return operate(node.operator, visit(node.left), visit(node.right))
      case 'ArithUnary':
        if (node.operator === '++' || node.operator === '--') return step(node.operator === '++' ? '+' : '-', node)
        if (node.operator === '~') return binary('-', { ...node, operator: '-', operand: visit(node.operand) }, one)
        return { ...node, operand: visit(node.operand) }
      case 'ArithTernary':
        return choose(visit(node.condition), visit(node.consequent), visit(node.alternate))
      case 'ArithAssignment': {
        assigns = true
        const target = node.subscript && node.subscript.type !== 'ArithVariable' ? { ...node, subscript: visit(node.subscript) } : node
        if (node.operator === '=') return { ...target, value: visit(node.value) }
        const { variable: name, stringKey, subscript } = node
        const isElement = subscript !== undefined || stringKey !== undefined
        const old: Expression = isElement ? element(name, subscript, stringKey) : variable(name)
        return { ...target, operator: '=', value: operate(node.operator.slice(0, -1) as Operator, visit(old), visit(node.value)) }
      }
      case 'ArithGroup':
      case 'ArithNested':
        return { type: 'ArithGroup', expression: visit(node.expression) }
      case 'ArithDynamicAssignment':
        assigns = true
        return checked(node)
      case 'ArithConcat':
      case 'ArithDynamicElement':
        return checked(node)
      default:
        return node
    }
  }

  function step(operator: '+' | '-', node: Extract<Expression, { type: 'ArithUnary' }>): Expression {
    assigns = true
    const { operand, prefix } = node
    if (operand.type !== 'ArithVariable') return checked(node)
    return keep(visit(operand), (old) => {
      const next = assign(operand.name, checked(binary(operator, old, one)))
      return prefix ? next : sequence(next, old)
    })
  }

  const exact = visit(expression)
  return { expression: exact, before, assigns }
}

const number = (value: number): Expression => ({ type: 'ArithNumber', value })
const [zero, one, half] = [number(0), number(1), number(2 ** 32)]
const variable = (name: string): Variable => ({ type: 'ArithVariable', name })
const binary = (operator: Operator, left: Expression, right: Expression): Expression => ({ type: 'ArithBinary', operator, left, right })
const sequence = (first: Expression, second: Expression) => binary(',', first, second)
const assign = (name: string, value: Expression): Expression => ({ type: 'ArithAssignment', operator: '=', variable: name, value })
const choose = (condition: Expression, consequent: Expression, alternate: Expression): Expression => ({
  type: 'ArithTernary',
  condition,
  consequent,
  alternate,
})
const element = (array: string, index: Expression | undefined, stringKey: string | undefined): Element => ({
  type: 'ArithArrayElement',
  array,
  ...(index && { index }),
  ...(stringKey !== undefined && { stringKey }),
})
const failure = (message: string): Expression => ({ type: 'ArithSyntaxError', errorToken: '', message })
const beyond = failure('a number beyond 2^53, which the simulation does not compute; use python3')

/** `value` is read several times. */
const inBound = (value: Expression, result = value) =>
  choose(binary('||', binary('>=', value, number(bound)), binary('<=', value, number(-bound))), beyond, result)

/** Bash takes the lowest six bits of a shift. */
const power = (exponent: Expression) => binary('**', number(2), binary('&', exponent, number(63)))
const floorRemainder = (value: Expression, divisor: Expression) => binary('%', binary('+', binary('%', value, divisor), divisor), divisor)
const floorDivision = (value: Expression, divisor: Expression) => binary('/', binary('-', value, floorRemainder(value, divisor)), divisor)
