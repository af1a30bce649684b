import { attributes, readElements } from './elements.ts'

export const specialTokens = ['<|im_start|>', '<|im_end|>', '<|endoftext|>'] as const

/** Largest number that is a token of its own: copying a number is then the same skill as copying a name. */
const largestNumber = 239

/**
 * Texts that are one token each. `head` is what the chat template renders before the first user message,
 * system text and tool schemas included; it is cut at line ends into a few long pieces.
 */
export function vocabularyPieces(head: string): string[] {
  const elements = readElements()
  const pieces = [
    ...headPieces(head),
    ...['system\n', 'user\n', 'assistant\n', 'tool\n', '<tool_call>', '</tool_call>'],
    ...['\n{"name": "', '", "arguments": {"', '": "', '", "', '"}}\n'],
    ...['lookup', 'calculate', 'name', 'attribute', 'expression', ...attributes],
    ...['What is the ', 'Give the ', ' of ', ' and ', ' or ', ', ', '? ', 'sum of the ', 's of ', 'Which has the higher '],
    ...['error', 'not found', 'none'],
    ...elements.map(({ name }) => name),
    ...elements.map(({ symbol }) => symbol),
    ...Array.from({ length: largestNumber + 1 }, (_, number) => String(number)),
  ]
  return [...new Set(pieces)].filter((piece) => piece.length > 1)
}

/** The head after its opening `<|im_start|>system\n` and before its closing `<|im_end|>`: the preamble, a piece for each schema, the rest. */
function headPieces(head: string): string[] {
  const inner = head.slice(head.indexOf('system\n') + 'system\n'.length, head.indexOf('<|im_end|>'))
  const open = inner.indexOf('\n<tools>') + '\n<tools>'.length
  const close = inner.indexOf('\n</tools>')
  if (open < '\n<tools>'.length || close < open)
    throw new Error('The rendered head has no <tools> block; the template does not print tools.')
  const schemas = inner.slice(open, close).split('\n').filter(Boolean)
  return [inner.slice(0, open), ...schemas.map((schema) => `\n${schema}`), inner.slice(close)]
}
