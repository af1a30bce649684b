import type { MessagePort } from 'node:worker_threads'
import { crc32 } from 'node:zlib'
import { fieldsOfLoggedTurn, type TurnBatch, type TurnBatchReply } from '@aworld-train/core'
import type { TrainError } from '@aworld-train/protocol'
import type { LoggedTurn, OwnedWrites } from './run-writes.ts'

/** The turns of a batch; their bodies and tokens stay where they are. */
function readBatch({ turns, bodies, tokens }: TurnBatch, strings: ReadonlyMap<number, string>): LoggedTurn[] {
  const read: LoggedTurn[] = []
  let bodyAt = 0
  let tokensAt = 0
  for (let at = 0; at < turns.length; at += fieldsOfLoggedTurn) {
    const [rollout, agent, attempt, index, parent, prefixLength, suffixLength, completionLength, bodyLength] = turns.subarray(
      at,
      at + fieldsOfLoggedTurn,
    ) as unknown as [number, number, number, number, number, number, number, number, number]
    const bytes = (suffixLength + 2 * completionLength) * 4
    const body = bodies.subarray(bodyAt, bodyAt + bodyLength)
    const record = { body, prefixLength, suffixLength, completionLength, crc32: crc32(tokens.subarray(tokensAt, tokensAt + bytes)) }
    bodyAt += bodyLength
    tokensAt += bytes
    const continued = parent >= 0 && prefixLength > 0 ? parent : null
    read.push({ rollout: strings.get(rollout)!, attempt, turn: { agent: strings.get(agent)!, index, parent: continued, record } })
  }
  return read
}

/** Answers the batches of a port in their order, each when its turns are durable. */
export function serveTurnPort(port: MessagePort, append: OwnedWrites['appendLogged'], toError: (error: unknown) => TrainError): void {
  const strings = new Map<number, string>()

  async function write(turns: readonly LoggedTurn[], tokens: Uint8Array): Promise<TurnBatchReply> {
    try {
      return await append(turns, tokens)
    } catch (cause) {
      const { code, message } = toError(cause)
      return { failures: turns.map((_, turn) => ({ turn, code, message })) }
    }
  }

  // Writes are done in the order in which they were asked for, so their answers are in order too.
  port.on('message', (batch: TurnBatch) => {
    for (const [number, text] of batch.strings) strings.set(number, text)
    const turns = readBatch(batch, strings)
    for (const number of batch.dropped) strings.delete(number)
    void write(turns, batch.tokens).then((reply) => port.postMessage(reply))
  })
}
