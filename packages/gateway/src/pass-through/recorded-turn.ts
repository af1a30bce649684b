import type { Turn } from '@aworld-train/protocol'
import { createRecordTokens, type RecordTokens } from './record-tokens.ts'
import { branchReasons, type RecordReplies } from './recorder-protocol.ts'

/** What is counted of a turn. */
export interface TurnCounts {
  readonly promptTokens: number
  readonly completionTokens: number
  readonly cachedTokens: number
}

/** Where a turn stands in a reply. */
export interface TurnPlace {
  readonly reply: Pick<RecordReplies, 'turns' | 'bodies' | 'tokens'>
  /** Of its numbers, body and tokens. */
  readonly at: number
  readonly bodyAt: number
  readonly tokenAt: number
}

/** A turn as the recorder thread wrote it: a few numbers, and bytes that are read when somebody wants the turn. */
export class RecordedTurn implements TurnCounts {
  delivered: Turn['delivered']
  readonly #fields: Int32Array
  readonly #at: number
  #place: TurnPlace | null
  #turn: Turn | null = null

  constructor(delivered: Turn['delivered'], place: TurnPlace) {
    this.delivered = delivered
    this.#fields = place.reply.turns
    this.#at = place.at
    this.#place = place
  }

  /** In its record. */
  get index(): number {
    return this.#fields[this.#at + 1]!
  }

  get parent(): number | null {
    const parent = this.#fields[this.#at + 2]!
    return parent < 0 ? null : parent
  }

  get branchReason(): 'root' | 'no-match' | null {
    return branchReasons[this.#fields[this.#at + 3] as 0 | 1 | 2]
  }

  get #suffixTokens(): number {
    return this.#fields[this.#at + 5]!
  }

  get promptTokens(): number {
    return this.#fields[this.#at + 4]! + this.#suffixTokens
  }

  get completionTokens(): number {
    return this.#fields[this.#at + 6]!
  }

  get cachedTokens(): number {
    return this.#fields[this.#at + 7]!
  }

  get cutByLength(): boolean {
    return this.#fields[this.#at + 8] === 1
  }

  /** The same turn at each call; `tokens` are those of its record, whose earlier turns were asked for before. */
  toTurn(tokens: RecordTokens): Turn {
    if (this.#place) {
      const { reply, bodyAt, tokenAt } = this.#place
      const middle = tokenAt + this.#suffixTokens
      const end = middle + this.completionTokens
      const { buffer, byteOffset } = reply.bodies
      const body = Buffer.from(buffer, byteOffset + bodyAt, this.#fields[this.#at + 9]!)
      const rest = JSON.parse(body.toString('utf8')) as Turn
      const ids = tokens.add(this.index, this.parent, reply.tokens.subarray(tokenAt, middle), reply.tokens.subarray(middle, end))
      const bits = reply.tokens.slice(end, end + this.completionTokens)
      this.#turn = { ...rest, ...ids, rolloutLogprobs: new Float32Array(bits.buffer) }
      this.#place = null
    }
    this.#turn!.delivered = this.delivered
    return this.#turn!
  }
}

/** Turns of one record by their index; one that was refused is missing. */
export interface RecordedTurns {
  readonly list: RecordedTurn[]
  readonly tokens: RecordTokens
}

export const createRecordedTurns = (): RecordedTurns => ({ list: [], tokens: createRecordTokens() })

/** All turns, or those up to index `last`. */
export function toTurns({ list, tokens }: RecordedTurns, last = list.length - 1): Turn[] {
  const turns: Turn[] = []
  for (let index = 0; index <= last; index++) {
    const turn = list[index]?.toTurn(tokens)
    if (turn) turns.push(turn)
  }
  return turns
}
