import type { ExecutedToolCall, ToolCallRecord, Trajectory } from '@aworld-train/core'

/**
 * The tool calls of an attempt with the turns that asked for them, in the order in which the trajectories ask for them. Calls that no turn
 * asked for are behind the others, those of one invocation after another, in the order in which they began.
 */
export function tieToolCalls(calls: readonly ExecutedToolCall[], trajectories: readonly Trajectory[]): ToolCallRecord[] {
  const sampled = sampledCalls(trajectories)
  const places = new Map(trajectories.map(({ id }, place) => [id, place]))
  const placeOf = ({ trajectory }: ExecutedToolCall) => places.get(trajectory) ?? places.size
  const byInvocation = calls.toSorted((a, b) => placeOf(a) - placeOf(b))
  const tied = byInvocation.map((call, index) => {
    const match = takeMatch(sampled, call)
    const { agent, trajectory, ...rest } = call
    const record = { agent, trajectory, turn: match?.turn ?? null, ...rest, id: call.id ?? match?.id ?? `call-${index + 1}` }
    return { record, place: match ? sampled.indexOf(match) : sampled.length }
  })
  return tied.sort((a, b) => a.place - b.place).map(({ record }) => record)
}

interface SampledCall {
  readonly trajectory: string
  readonly turn: number
  readonly id: string
  readonly name: string
  readonly arguments: string
  taken: boolean
}

function sampledCalls(trajectories: readonly Trajectory[]): SampledCall[] {
  return trajectories.flatMap(({ id: trajectory, turns }) =>
    turns.flatMap(({ index, toolCalls }) => toolCalls.map((call) => ({ ...call, trajectory, turn: index, taken: false }))),
  )
}

/** The sampled call with the same id; where there is no id, the first with the same name and arguments that no other record has taken. */
function takeMatch(calls: readonly SampledCall[], call: ExecutedToolCall): SampledCall | undefined {
  const match = calls.find(
    (other) =>
      !other.taken &&
      other.trajectory === call.trajectory &&
      (call.id === undefined
        ? other.name === call.name && compactJson(other.arguments) === compactJson(call.arguments)
        : other.id === call.id),
  )
  if (match) match.taken = true
  return match
}

function compactJson(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text))
  } catch {
    return text
  }
}
