import { argumentsText } from './call-object.ts'
import { scanJson } from './json-scan.ts'
import type { ToolCallSyntax } from './syntax.ts'

/** Syntax of gpt-oss: messages with a channel and, for a call, a recipient in their header (the format of openai-harmony). */
export const harmony: ToolCallSyntax = {
  name: 'harmony',
  opens: [],
  close: '<|call|>',
  channels: true,
  scan: () => scanJson({ first: '{' }),
  /** Parses one message, with its header and its body on either side of `<|message|>`. */
  parse(text) {
    const at = text.indexOf('<|message|>')
    const recipient = recipientOf(text.slice(0, Math.max(at, 0)))
    const json = at < 0 ? null : argumentsText(text.slice(at + '<|message|>'.length))
    return recipient === null || json === null ? null : [{ name: recipient, arguments: json }]
  },
  opening: (name) => `<|channel|>commentary to=functions.${name === null ? '' : `${name} <|constrain|>json<|message|>`}`,
}

/** The tool that a message is addressed to; `null` for the user. Functions of the user have a namespace, which is dropped. */
export function recipientOf(header: string): string | null {
  const to = /(?:^|\s)to=([^\s<]+)/.exec(header)?.[1]
  return to === undefined || to === 'user' || to === 'all' ? null : to.replace(/^functions\./, '')
}

export const harmonyMarkers = ['<|start|>', '<|channel|>', '<|constrain|>', '<|message|>', '<|end|>', '<|call|>', '<|return|>'] as const
