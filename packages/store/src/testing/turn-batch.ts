import { fieldsOfLoggedTurn, type TurnBatch } from '@aworld-train/core'
import type { Turn } from '@aworld-train/protocol'
import { toTurnRecord } from '../turn-record.ts'

/** Turns of one attempt as another thread hands them over; a turn's parent is among them. */
export function turnBatch(rollout: string, turns: readonly Turn[]): TurnBatch {
  const records = turns.map((turn) => toTurnRecord(turn, turns.find(({ index }) => index === turn.parent) ?? null))
  const bodies = records.map(({ body }) => Buffer.from(body))
  const fields = turns.map(({ attempt, index, parent }, position) => {
    const { prefixLength, suffixLength, completionLength } = records[position]!
    return [0, 1, attempt, index, parent ?? -1, prefixLength, suffixLength, completionLength, bodies[position]!.length]
  })
  return {
    strings: [
      [0, rollout],
      [1, turns[0]!.agent],
    ],
    dropped: [0, 1],
    turns: Int32Array.from(fields.flat().slice(0, turns.length * fieldsOfLoggedTurn)),
    bodies: new Uint8Array(Buffer.concat(bodies)),
    tokens: new Uint8Array(Buffer.concat(records.map(({ bytes }) => bytes))),
  }
}
