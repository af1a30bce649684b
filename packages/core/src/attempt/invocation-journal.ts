import type { InvocationOptions } from '../contracts/agent-program.ts'
import type { InvocationRecord } from '../protocol/attempt.ts'
import { TrainError } from '../protocol/errors.ts'
import { preciseNow } from '../time/precise-now.ts'
import { invocationId, invocationPlace, placeForm } from '../trajectory/invocations.ts'

/** An id of a tool call that the gateway made: after the invocation's own digits, the numbers of the model call and of the tool call. */
const ownToolCall = /^call_[0-9a-f]{12}_(\d+)_(\d+)$/

interface Entry {
  readonly record: InvocationRecord
  hasEnded: boolean
}

/** The invocations of one attempt as the agent's side sees them, in the order in which they began. */
export class InvocationJournal {
  readonly #agents: readonly string[]
  readonly #entries = new Map<string, Entry>()

  /** `agents` are those of the program, in their order. */
  constructor(agents: readonly string[]) {
    this.#agents = agents
  }

  /** Records that an invocation starts. Throws AGENT_INVALID for an id that was started before, and for a place that a URL cannot carry. */
  start(agent: string, { place = '', startedBy = [] }: InvocationOptions = {}): { readonly id: string; readonly place: string } {
    const id = this.#idOf(agent, place)
    if (this.#entries.get(id)?.record.timing) {
      throw new TrainError(
        'AGENT_INVALID',
        `The invocation "${id}" was started before; give each start of agent "${agent}" a place of its own.`,
      )
    }
    const now = preciseNow()
    this.#add({ id, agent, startedBy: [...startedBy], answered: false, timing: { startedAt: now, endedAt: now } })
    return { id, place }
  }

  /** The invocation of an agent at a place that the program gives it, which may be the id of a tool call. It is the same whenever it is asked for. */
  at(agent: string, place = ''): { readonly id: string; readonly place: string } {
    const own = ownToolCall.exec(place)
    const ownPlace = own ? `${own[1]}.${own[2]}` : place
    const id = this.#idOf(agent, ownPlace)
    const existing = this.#entries.get(id)
    if (!existing)
      this.#add({ id, agent, startedBy: place === '' ? [] : [{ trajectory: null, toolCall: place }], answered: false, timing: null })
    const { toolCall = place } = existing?.record.startedBy[0] ?? {}
    if (own && toolCall !== place) {
      throw new TrainError(
        'AGENT_INVALID',
        `The tool calls ${toolCall} and ${place} both ask for the invocation "${id}"; put the place of each caller before it, such as context.policy("${agent}", "first.${ownPlace}").`,
      )
    }
    return { id, place: ownPlace }
  }

  end(id: string, answered: boolean): void {
    const entry = this.#entries.get(id)
    if (!entry || entry.hasEnded) return
    entry.hasEnded = true
    entry.record.answered = answered
    if (entry.record.timing) entry.record.timing.endedAt = preciseNow()
  }

  /** What the invocations were. Those that still work end now. */
  records(): InvocationRecord[] {
    return Array.from(this.#entries, ([id, { record }]) => {
      this.end(id, false)
      return record
    })
  }

  #add(record: InvocationRecord): void {
    this.#entries.set(record.id, { record, hasEnded: false })
  }

  #idOf(agent: string, place: string): string {
    if (place !== '' && !invocationPlace.test(place)) {
      const what = place.length > 256 ? `${place.length} characters long` : JSON.stringify(place)
      throw new TrainError('AGENT_INVALID', `The place of an invocation of agent "${agent}" is ${what}; give it ${placeForm}.`)
    }
    return invocationId(this.#agents, agent, place)
  }
}
