import {
  type Episode,
  type InvocationStart,
  invocationId,
  orderTrajectories,
  type ToolCall,
  type ToolCallRecord,
  type Trajectory,
} from '@aworld-train/core'
import type { OwnedRunStore } from '@aworld-train/store'
import { bytes, nameWith, toRequest, toTurn } from './write-run.ts'

export interface WriteSwarmOptions {
  /** Whether its agents still work, so that only their turns are known. */
  readonly isRunning?: boolean
  /** Number of readers that the planner asks at once, from 2. There are seven other invocations. */
  readonly readers?: number
  /** Text of questions, answers and names of agents. */
  readonly text?: string
  readonly sample?: number
}

/** Milliseconds of a unit of time below. */
const unit = 10

interface WrittenTurn {
  readonly at: readonly [from: number, to: number]
  /** Names of its tool calls. A turn without one answers. */
  readonly calls?: readonly string[]
}

/**
 * Writes the rollout of a swarm into an open run: a planner asks readers at once, of which the second asks two helpers. A writer takes the
 * plan over, the planner works again and asks one more reader, and the writer writes again with both answers. Resolves to its key.
 */
export async function writeSwarm(
  store: OwnedRunStore,
  { isRunning = false, readers = 3, text = 'six', sample = 0 }: WriteSwarmOptions = {},
): Promise<string> {
  const [planner, reader, helper, writer] = ['planner', 'reader', 'helper', 'writer'].map((name) => nameWith(name, text)) as [
    string,
    string,
    string,
    string,
  ]
  const agents = [planner, reader, helper, writer]
  const group = isRunning ? 'train/4/0' : 'evaluation/swarm/0'
  const request = toRequest(`${group}/${sample}`, group, 'swarm-0', isRunning ? 'train' : 'test', isRunning ? 4 : 2, text)
  const { attempt } = await store.begin(request)
  const trajectories: Trajectory[] = []
  const toolCalls: ToolCallRecord[] = []
  const start = Date.now()
  const time = (at: number) => start + unit * at

  function work(agent: string, place: string, startedBy: readonly InvocationStart[], written: readonly WrittenTurn[]): void {
    const id = invocationId(agents, agent, place)
    const question = place === '' ? (request.task.input as string) : `${text} for ${id}`
    const turns: Trajectory['turns'] = []
    let prompt = [256, ...bytes(`user\n${question}`), 257]
    let turnCalls: ToolCall[] = []
    for (const [index, { at, calls = [] }] of written.entries()) {
      const content = calls.length > 0 ? null : `${text}, said by ${agent}${sample > 0 ? ` in sample ${sample}` : ''}`
      const results = turnCalls.map((call) => ({ role: 'tool' as const, content: text, toolCallId: call.id, name: call.name }))
      turnCalls = calls.map((name, number) => ({
        id: `call_${trajectories.length}_${index}_${number}`,
        name,
        arguments: JSON.stringify({ text }),
      }))
      const ids = [...bytes(content ?? '<tool_call>'), 257]
      turns.push(
        toTurn(
          { agent, trajectory: id, index, promptIds: prompt, ids, logprob: -0.3 },
          {
            messagesDelta: index === 0 ? [{ role: 'user', content: question }] : results,
            message: { role: 'assistant', content, ...(turnCalls.length > 0 && { toolCalls: turnCalls }) },
            toolCalls: turnCalls,
            timing: { startedAt: time(at[0]), endedAt: time(at[1]) },
          },
        ),
      )
      prompt = [...prompt, ...ids, ...bytes(`tool\n${text}`), 257]
      const until = written[index + 1]?.at[0] ?? at[1]
      for (const call of turnCalls) {
        const timing = { startedAt: time(at[1] + 1), endedAt: time(until - 1) }
        toolCalls.push({ agent, trajectory: id, turn: index, ...call, content: text, isError: false, timing })
      }
    }
    const timing = { startedAt: time(written[0]!.at[0] - 1), endedAt: time(written.at(-1)!.at[1] + 1) }
    trajectories.push({ version: 2, id, agent, policy: 'policy', trainable: true, startedBy: [...startedBy], timing, turns })
  }
  /** The start by a call of a trajectory that is written already. */
  const by = (id: string, turn: number, call: number): InvocationStart[] => [
    { trajectory: id, turn, toolCall: trajectories.find((each) => each.id === id)!.turns[turn]!.toolCalls[call]!.id },
  ]
  const answerOf = (id: string, turn: number): InvocationStart => ({ trajectory: id, turn, toolCall: null })

  work(planner, '', [], [{ at: [5, 40], calls: Array.from({ length: readers }, () => reader) }, { at: [150, 170] }])
  for (let each = 0; each < readers; each++) {
    const begin = 43 + (each % 4)
    const turns: WrittenTurn[] =
      each === 1
        ? [{ at: [begin, 70], calls: [helper, helper] }, { at: [112, 142] }]
        : [{ at: [begin, 60 + 3 * (each % 7)], calls: [nameWith('lookup', text)] }, { at: [90 + (each % 5), 110 + 4 * (each % 9)] }]
    work(reader, `0.0.${each}`, by(planner, 0, each), turns)
  }
  const second = invocationId(agents, reader, '0.0.1')
  for (const each of [0, 1]) work(helper, `1:0.0.1.0.${each}`, by(second, 0, each), [{ at: [72 + each, 100 + 9 * each] }])
  work(writer, '', [answerOf(planner, 1)], [{ at: [173, 200] }])
  work(planner, '2', [answerOf(writer, 0)], [{ at: [203, 215], calls: [reader] }, { at: [243, 260] }])
  const again = invocationId(agents, planner, '2')
  work(reader, '0:2.0.0', by(again, 0, 0), [{ at: [218, 240] }])
  work(writer, '2', [answerOf(writer, 0), answerOf(again, 1)], [{ at: [263, 290] }])

  const ordered = orderTrajectories(trajectories, agents)
  for (const { id, turns } of ordered)
    for (const turn of turns) if (!isRunning || turn.timing.endedAt < time(105)) await store.appendTurn(request.key, attempt, id, turn)
  if (isRunning) return request.key
  const episode: Episode = {
    version: 2,
    rollout: request.key,
    attempt,
    taskId: request.task.id,
    group,
    sample,
    split: request.split,
    trajectories: ordered,
    toolCalls,
    answer: text,
    messages: [],
    scores: {},
    reward: sample === 0 ? 1 : 0,
    stopReason: 'completed',
    timing: { startedAt: start, endedAt: time(295) },
  }
  await store.finish(episode)
  return request.key
}
