import { parseCallList, parseCallObject } from './call-object.ts'
import { scanJson } from './json-scan.ts'
import type { ToolCallSyntax } from './syntax.ts'

/** `<tool_call>` with one JSON object: Qwen 2.5 and 3, QwQ, Hermes, Granite 4. */
export const taggedJson: ToolCallSyntax = {
  name: 'tagged-json',
  opens: ['<tool_call>'],
  close: '</tool_call>',
  tell: '</tool_call>',
  scan: () => scanJson({ first: '{' }),
  parse(body) {
    const call = parseCallObject(body)
    return call && [call]
  },
  opening: (name) => `<tool_call>\n{"name":${named(name, 'arguments')}`,
}

/** Markers that Llama 4 may put around its calls. */
export const llama4Markers: readonly string[] = ['<|python_start|>', '<|python_end|>']

/**
 * A message that is one JSON object: Llama 3.1 to 3.3, also after `<|python_tag|>`. Several objects are joined by semicolons. An answer
 * that is another JSON object stays text, so both members of a call are required.
 */
export const bareJson: ToolCallSyntax = {
  name: 'bare-json',
  opens: ['<|python_tag|>'],
  bare: '{',
  close: null,
  around: llama4Markers,
  scan: () => scanJson({ first: '{', separator: ';', firstKeys: ['name', 'parameters', 'arguments', 'type', 'function', 'id'] }),
  parse(body) {
    const calls = splitObjects(body).map((text) => parseCallObject(text, 'needs-arguments'))
    return calls.length > 0 && calls.every((call) => call !== null) ? calls : null
  },
  opening: (name) => `{"name":${named(name, 'parameters')}`,
}

interface ListMarkers {
  readonly name: string
  readonly open: string
  readonly close: string | null
  /** Names of the members if they are not `name` and `arguments`. */
  readonly keys?: readonly [name: string, argumentsText: string]
}

/** A marker and one JSON array of calls, up to the closing marker or the end of the message. */
export function jsonList({ name: row, open, close, keys: [nameKey, argumentsKey] = ['name', 'arguments'] }: ListMarkers): ToolCallSyntax {
  return {
    name: row,
    opens: [open],
    close,
    scan: () => scanJson({ first: '[' }),
    parse: parseCallList,
    opening: (name) => `${open}[{"${nameKey}":${named(name, argumentsKey)}`,
  }
}

const named = (name: string | null, key: string): string => (name === null ? '' : ` ${JSON.stringify(name)}, "${key}":`)

/** The texts between semicolons that stand outside of objects. */
function splitObjects(body: string): string[] {
  const texts: string[] = []
  let text = ''
  let scan = scanJson({ first: '{' })
  for (const part of body.split(';')) {
    text += part
    scan.read(part)
    if (scan.state === 'complete') {
      texts.push(text)
      text = ''
      scan = scanJson({ first: '{' })
    } else {
      text += ';'
      scan.read(';')
    }
  }
  return text === '' ? texts : [...texts, text]
}
