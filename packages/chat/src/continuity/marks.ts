import { randomUUID } from 'node:crypto'
import type { Message } from '@aworld-train/core'
import type { TurnKind } from '../types.ts'

export type MarkKind = 'reasoning' | 'content' | 'arguments'

/** A word that stands for a sampled text in a skeleton. It has only letters and digits, so that no template trims or escapes it. */
export interface Mark {
  readonly kind: MarkKind
  readonly text: string
}

export interface MarkedMessage {
  readonly marked: Message
  readonly marks: readonly Mark[]
}

/** The marks of one conversation, which no text of a client can contain. */
export interface Marks {
  /** Mark after the text of a trailing assistant message. */
  readonly end: string
  /** A trailing assistant message with marks for its texts. */
  prefill(message: Message): MarkedMessage
  message(turn: number, message: Message): MarkedMessage
}

export function createMarks(): Marks {
  const secret = randomUUID().replaceAll('-', '')
  return {
    end: word(secret, 'xE'),
    prefill: (message) => markMessage(`${secret}xP`, { ...message, content: message.content || ' ' }),
    message: (turn, message) => markMessage(`${secret}x${turn}`, message),
  }
}

const word = (name: string, part: string): string => `sAmPLed7Q${name}x${part}Z`

/**
 * Replaces the texts of the delivered message by marks, and returns the marks in the order in which they were
 * sampled. Empty texts stay empty.
 */
export function markMessage(name: string, message: Message): MarkedMessage {
  const marks: Mark[] = []
  const mark = (kind: MarkKind, part: string): string => {
    const text = word(name, part)
    marks.push({ kind, text })
    return text
  }
  const { toolCalls = [] } = message
  const reasoning = message.reasoning ? mark('reasoning', 'R') : undefined
  const nothing = !message.reasoning && !message.content && toolCalls.length === 0
  const content = message.content || nothing ? mark('content', 'C') : message.content
  const markedCalls = toolCalls.map((call, index) => ({
    ...call,
    arguments: JSON.stringify({ [firstKey(call.arguments)]: mark('arguments', `A${index}`) }),
  }))
  const marked: Message = {
    role: 'assistant',
    content,
    ...(reasoning === undefined ? {} : { reasoning }),
    ...(toolCalls.length === 0 ? {} : { toolCalls: markedCalls }),
  }
  return { marked, marks }
}

export function turnKind({ content, reasoning, toolCalls = [] }: Message): TurnKind {
  if (toolCalls.length > 1) return 'calls'
  if (toolCalls.length === 1) return 'call'
  return reasoning && !content ? 'reasoning' : 'plain'
}

/** The key of the first member of valid JSON. The rest is not read. */
function firstKey(argumentsText: string): string {
  const key = /^\s*\{\s*("(?:[^"\\]|\\.)*")\s*:/.exec(argumentsText)?.[1]
  return key === undefined ? 'a' : (JSON.parse(key) as string)
}
