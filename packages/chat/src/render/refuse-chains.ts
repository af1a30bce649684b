interface Token {
  readonly type: string
  readonly value: string
}

const opens = new Set(['OpenParen', 'OpenSquareBracket', 'OpenCurlyBracket'])
const closes = new Set(['CloseParen', 'CloseSquareBracket', 'CloseCurlyBracket'])
const boundaries = new Set(['OpenExpression', 'OpenStatement', 'Comma', 'Colon', 'Equals'])
const words = new Set(['and', 'or', 'not', 'if', 'elif', 'else'])

/** Throws SyntaxError for `a < b < c`, because the parser, unlike Python, reads it as `(a < b) < c`. */
export function refuseChains(tokens: readonly Token[]): void {
  /** Whether a comparison has been read, for each open bracket. */
  let compared: boolean[] = [false]
  let loopTarget = false
  for (const [index, { type, value }] of tokens.entries()) {
    const isWord = type === 'Identifier'
    if (type === 'OpenExpression' || type === 'OpenStatement') compared = [false]
    if (type === 'OpenStatement') loopTarget = tokens[index + 1]?.value === 'for'
    if (opens.has(type)) compared.push(false)
    else if (closes.has(type)) compared.pop()
    else if (type === 'ComparisonBinaryOperator' || (isWord && value === 'in')) {
      if (isWord && loopTarget) {
        loopTarget = false
        continue
      }
      if (compared.at(-1)) throw new SyntaxError('a chain of comparisons is not supported')
      compared[compared.length - 1] = true
    } else if (boundaries.has(type) || (isWord && words.has(value) && !isNotIn(tokens, index))) compared[compared.length - 1] = false
  }
}

function isNotIn(tokens: readonly Token[], index: number): boolean {
  return tokens[index]?.value === 'not' && tokens[index + 1]?.value === 'in'
}
