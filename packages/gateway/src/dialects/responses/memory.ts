import type { Message } from '@aworld-train/protocol'

/** An answer that later calls may refer to. */
export interface StoredResponse {
  /** The conversation up to and with the answer, without the instructions, which are each call's own. */
  readonly messages: readonly Message[]
  /** The answer as it was sent. */
  readonly json: string
}

/** Answers of one agent in one attempt, by id; the oldest is dropped where they would be too many. */
export interface ResponseMemory {
  get(id: string): StoredResponse | undefined
  set(id: string, response: StoredResponse): void
  delete(id: string): boolean
}

export interface ResponseMemoryLimits {
  readonly maxResponses?: number | undefined
}

/** An empty memory; nothing to close. */
export function createResponseMemory({ maxResponses = 256 }: ResponseMemoryLimits = {}): ResponseMemory {
  const responses = new Map<string, StoredResponse>()
  return {
    get: (id) => responses.get(id),
    set(id, response) {
      responses.set(id, response)
      const oldest = responses.keys().next().value
      if (responses.size > maxResponses && oldest !== undefined) responses.delete(oldest)
    },
    delete: (id) => responses.delete(id),
  }
}
