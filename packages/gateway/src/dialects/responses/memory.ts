import type { Message } from '@aworld-train/core'

/** An answer that later calls may refer to. */
export interface StoredResponse {
  /** The conversation up to and including the answer, without the instructions, which are each call's own. */
  readonly messages: readonly Message[]
  /** The answer as it was sent, without `echo`. */
  readonly json: string
  /** Members of the answer that repeat its request, as JSON between `{` and `}`. */
  readonly echo?: string | undefined
}

/** The answer as it was sent. */
export const wholeJson = ({ json, echo }: Pick<StoredResponse, 'json' | 'echo'>): string =>
  echo === undefined ? json : `${json.slice(0, -1)},${echo}}`

/** Answers of one agent in one attempt, by id. The oldest are dropped beyond the limits. */
export interface ResponseMemory {
  get(id: string): StoredResponse | undefined
  set(id: string, response: StoredResponse): void
  delete(id: string): boolean
}

export interface ResponseMemoryLimits {
  readonly maxResponses?: number | undefined
  /** Most characters of all kept messages and answers. The newest answer is kept whatever its length. */
  readonly maxCharacters?: number | undefined
}

interface Entry {
  readonly response: StoredResponse
  readonly characters: number
}

const lengthOf = ({ content, reasoning, toolCalls = [] }: Message) =>
  toolCalls.reduce((sum, call) => sum + call.arguments.length, (content?.length ?? 0) + (reasoning?.length ?? 0))

const equalCalls = (left: Message['toolCalls'] = [], right: Message['toolCalls'] = []) =>
  left.length === right.length &&
  left.every((call, index) => {
    const other = right[index]
    return call.id === other?.id && call.name === other.name && call.arguments === other.arguments
  })

const equalMessages = (left: Message, right: Message) =>
  left === right ||
  (left.role === right.role &&
    left.content === right.content &&
    left.reasoning === right.reasoning &&
    left.toolCallId === right.toolCallId &&
    left.name === right.name &&
    equalCalls(left.toolCalls, right.toolCalls))

/** Creates an empty memory, which needs no closing. If an answer repeats the one before, only the rest takes memory. */
export function createResponseMemory(limits: ResponseMemoryLimits = {}): ResponseMemory {
  const { maxResponses = 1_024, maxCharacters = 8_000_000 } = limits
  const entries = new Map<string, Entry>()
  let characters = 0
  let newest: StoredResponse = { messages: [], json: '' }

  function remove(id: string): boolean {
    characters -= entries.get(id)?.characters ?? 0
    return entries.delete(id)
  }

  return {
    get: (id) => entries.get(id)?.response,
    set(id, entry) {
      remove(id)
      let added = 0
      const share = (text: string, before: string | undefined) => {
        if (text === before) return before
        added += text.length
        return text
      }
      const messages = entry.messages.map((message, index) => {
        const before = newest.messages[index]
        if (before && equalMessages(before, message)) return before
        added += lengthOf(message)
        return message
      })
      const json = share(entry.json, newest.json)
      newest = { messages, json, ...(entry.echo !== undefined && { echo: share(entry.echo, newest.echo) }) }
      characters += added
      entries.set(id, { response: newest, characters: added })
      for (const oldest of entries.keys()) {
        if (oldest === id || (entries.size <= maxResponses && characters <= maxCharacters)) break
        remove(oldest)
      }
    },
    delete: remove,
  }
}
