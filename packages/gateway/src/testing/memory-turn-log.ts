import { MessageChannel, type MessagePort } from 'node:worker_threads'
import { fieldsOfLoggedTurn, type TurnBatch, type TurnBatchReply, type TurnLog } from '@aworld-train/core'
import type { Turn } from '@aworld-train/protocol'

export interface LoggedTurn {
  readonly rollout: string
  readonly attempt: number
  readonly agent: string
  readonly turn: Turn
}

/** A turn log without a disk. */
export interface MemoryTurnLog extends TurnLog {
  /** In the order they came; prompts are whole. */
  readonly turns: readonly LoggedTurn[]
  /** Turns are refused with this from now on. */
  refuse: TurnBatchReply['failures'][number]['code'] | null
  /** Batches are answered after this many milliseconds. */
  delayMs: number
  close(): void
}

export function memoryTurnLog(): MemoryTurnLog {
  const turns: LoggedTurn[] = []
  const ports: MessagePort[] = []

  function read({ turns: fields, bodies, tokens }: TurnBatch, strings: ReadonlyMap<number, string>): LoggedTurn[] {
    const read: LoggedTurn[] = []
    let [bodyAt, tokenAt] = [0, tokens.byteOffset]
    for (let at = 0; at < fields.length; at += fieldsOfLoggedTurn) {
      const [rollout, agent, attempt, index, parent, prefix, suffix, completion, body] = [...fields.subarray(at, at + fieldsOfLoggedTurn)]
      const text = Buffer.from(bodies.subarray(bodyAt, bodyAt + body!)).toString()
      bodyAt += body!
      const ids = new Int32Array(tokens.buffer, tokenAt, suffix! + completion!)
      tokenAt += ids.byteLength
      const rolloutLogprobs = new Float32Array(tokens.buffer, tokenAt, completion!)
      tokenAt += rolloutLogprobs.byteLength
      const who = { rollout: strings.get(rollout!)!, attempt: attempt!, agent: strings.get(agent!)! }
      const all = [...turns, ...read].filter(
        (each) => each.rollout === who.rollout && each.attempt === who.attempt && each.agent === who.agent,
      )
      const before = all.find(({ turn }) => turn.index === parent)?.turn
      const known = before ? [...before.promptTokenIds, ...before.completionTokenIds].slice(0, prefix) : []
      const promptTokenIds = Int32Array.from([...known, ...ids.subarray(0, suffix)])
      const turn = { ...JSON.parse(text), promptTokenIds, completionTokenIds: ids.slice(suffix), rolloutLogprobs } as Turn
      if (turn.index !== index || turn.parent !== (parent! < 0 ? null : parent))
        throw new Error('The body of a turn contradicts its numbers.')
      read.push({ ...who, turn })
    }
    return read
  }

  const log: MemoryTurnLog = {
    turns,
    refuse: null,
    delayMs: 0,
    connect() {
      const { port1, port2 } = new MessageChannel()
      const strings = new Map<number, string>()
      ports.push(port2)
      port2.on('message', (batch: TurnBatch) => {
        for (const [number, text] of batch.strings) strings.set(number, text)
        const came = read(batch, strings)
        for (const number of batch.dropped) strings.delete(number)
        const code = log.refuse
        if (!code) turns.push(...came)
        const failures = code ? came.map((_, turn) => ({ turn, code, message: 'The log refuses.' })) : []
        setTimeout(() => port2.postMessage({ failures } satisfies TurnBatchReply), log.delayMs)
      })
      return port1
    },
    close() {
      for (const port of ports) port.close()
    },
  }
  return log
}
