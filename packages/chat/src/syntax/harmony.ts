import { argumentsText } from './call-object.ts'
import { scanJson } from './json-scan.ts'
import type { ToolCallSyntax } from './syntax.ts'

/** gpt-oss: messages with a channel and, for a call, a recipient in their header (the format of openai-harmony). */
export const harmony: ToolCallSyntax = {
  name: 'harmony',
  opens: [],
  close: '<|call|>',
  channels: true,
  scan: () => scanJson({ first: '{' }),
  /** The header and the body of one message, as they stand on either side of `<|message|>`. */
  parse(text) {
    const at = text.indexOf('<|message|>')
    const recipient = recipientOf(text.slice(0, Math.max(at, 0)))
    const json = at < 0 ? null : argumentsText(text.slice(at + '<|message|>'.length))
    return recipient === null || json === null ? null : [{ name: recipient, arguments: json }]
  },
  opening: (name) => `<|channel|>commentary to=functions.${name === null ? '' : `${name} <|constrain|>json<|message|>`}`,
}

/** The tool a message is addressed to; `null` for one to the user. Functions of the user stand in a namespace, which is dropped. */
export function recipientOf(header: string): string | null {
  const to = /(?:^|\s)to=([^\s<]+)/.exec(header)?.[1]
  return to === undefined || to === 'user' || to === 'all' ? null : to.replace(/^functions\./, '')
}

export const harmonyMarkers = ['<|start|>', '<|channel|>', '<|constrain|>', '<|message|>', '<|end|>', '<|call|>', '<|return|>'] as const
