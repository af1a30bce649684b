import { endianness } from 'node:os'
import type { MessagePort } from 'node:worker_threads'
import { fieldsOfLoggedTurn, type TurnBatch, type TurnBatchReply } from '@aworld-train/core'
import { GrowingBytes } from './growing-bytes.ts'
import type { OpenedRecord } from './recorder-protocol.ts'

/** A turn of the open batch; `from` on its bytes lie in what is given. */
export interface TurnToLog {
  readonly record: number
  readonly index: number
  readonly parent: number | null
  readonly prefixTokens: number
  readonly suffixTokens: number
  readonly completionTokens: number
  readonly body: Uint8Array
  readonly tokens: Uint8Array
}

/** The recorder's side of a log. */
export interface LogPort {
  open(opened: OpenedRecord): void
  forget(record: number): void
  /** Returns its position in the batch. */
  add(turn: TurnToLog): number
  /** Sends the batch, if there is one, and resolves with the answer to it. */
  send(): Promise<TurnBatchReply['failures']> | null
}

const bigEndian = endianness() === 'BE'

interface LoggedRecord {
  readonly rollout: number
  readonly agent: number
  readonly attempt: number
}

export function createLogPort(port: MessagePort): LogPort {
  const records = new Map<number, LoggedRecord>()
  const bodies = new GrowingBytes()
  const tokens = new GrowingBytes()
  let strings: [number, string][] = []
  let dropped: number[] = []
  let fields: number[] = []
  let numbers = 0
  let closed = false
  /** Batches that were sent, first to last. */
  const sent: { readonly turns: number; readonly resolve: (failures: TurnBatchReply['failures']) => void }[] = []

  port.on('message', ({ failures }: TurnBatchReply) => sent.shift()?.resolve(failures))
  port.on('close', () => {
    closed = true
    for (const { turns, resolve } of sent.splice(0)) resolve(lost(turns))
  })
  const lost = (turns: number): TurnBatchReply['failures'] =>
    Array.from({ length: turns }, (_, turn) => ({
      turn,
      code: 'STORE_FAILED',
      message: 'The run store was closed before the turn was durable.',
    }))

  return {
    open({ record, agent, log }) {
      const { rollout, attempt } = log!
      records.set(record, { rollout: numbers++, agent: numbers++, attempt })
      strings.push([numbers - 2, rollout], [numbers - 1, agent])
    },
    forget(record) {
      const known = records.get(record)
      if (!known) return
      records.delete(record)
      dropped.push(known.rollout, known.agent)
    },
    add({ record, index, parent, prefixTokens, suffixTokens, completionTokens, body, tokens: ids }) {
      const { rollout, agent, attempt } = records.get(record)!
      fields.push(rollout, agent, attempt, index, parent ?? -1, prefixTokens, suffixTokens, completionTokens, body.length)
      bodies.add(body)
      tokens.add(ids)
      return fields.length / fieldsOfLoggedTurn - 1
    },
    send() {
      if (fields.length === 0) return null
      const turns = Int32Array.from(fields)
      const batch: TurnBatch = { strings, dropped, turns, bodies: bodies.take(), tokens: tokens.take() }
      strings = []
      dropped = []
      fields = []
      const count = turns.length / fieldsOfLoggedTurn
      if (closed) return Promise.resolve(lost(count))
      if (bigEndian) Buffer.from(batch.tokens.buffer).swap32()
      port.postMessage(batch, [turns.buffer, batch.bodies.buffer, batch.tokens.buffer] as ArrayBuffer[])
      return new Promise((resolve) => sent.push({ turns: count, resolve }))
    },
  }
}
