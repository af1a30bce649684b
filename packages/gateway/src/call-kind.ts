import { type Message, TrainError, type TrainedCall, type TrainedCalls, type Turn } from '@aworld-train/core'

/** Reads the kind of a call for the record: whether a run trains it. */
export type ReadCallKind = (call: Omit<TrainedCall, 'messages'> & { readonly messages: () => readonly Message[] }) => Pick<Turn, 'callKind'>

/** `with-tools` is decided after an episode, because only then is it known whether its agent had tools. */
export function createCallKinds(trained: TrainedCalls): ReadCallKind {
  if (trained === 'all') return () => ({})
  if (trained === 'with-tools') return ({ tools }) => ({ callKind: tools.length > 0 ? 'with-tools' : 'without-tools' })
  return ({ agent, tools, messages }) => {
    try {
      return trained({ agent, tools, messages: messages() }) ? {} : { callKind: 'left-out' }
    } catch (cause) {
      const why = cause instanceof Error ? cause.message : String(cause)
      throw new TrainError('CONFIG_INVALID', `gateway.trainedCalls threw for a call of agent "${agent}": ${why}`, { cause })
    }
  }
}

/** The messages of the request that led to a turn. */
export function messagesOf(turns: readonly Turn[], parent: number | null, delta: readonly Message[]): readonly Message[] {
  const parts = [delta]
  for (let turn = parent === null ? undefined : turns[parent]; turn; turn = turn.parent === null ? undefined : turns[turn.parent])
    parts.push([...turn.messagesDelta, turn.message])
  return parts.reverse().flat()
}
