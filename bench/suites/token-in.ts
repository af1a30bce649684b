import type { Agent } from 'node:http'
import { type BenchRow, type BenchSuite, compare, type Spread, spreadOf } from '../suite.ts'
import type { Reply } from '../token-in/gateway-process.ts'
import { type ServedProcess, send, startServed } from '../token-in/served-process.ts'
import { callText, contextTokens, type Growth, resultWords, text, tools, turns } from '../token-in/workload.ts'

const conversations = 16
const warmUps = 3
const measured = [2, turns] as const

/** CPU of a call by its place in a conversation that grows to 32,000 tokens: `npm run bench -- token-in [rounds]`, nine rounds by default. */
export const tokenIn: BenchSuite = {
  async run(args) {
    const rounds = Number(args[0] ?? 9)
    const rows: BenchRow[] = []
    const notes: string[] = []
    await using gateway = await startServed('gateway', 2 * contextTokens)
    await using echo = await startServed('echo', 2 * contextTokens)
    for (const growth of ['even', 'bursts'] as const) {
      const ours: Round[] = []
      const bare: Round[] = []
      for (let index = -warmUps; index < rounds; index += 1) {
        const [one, other] = [await playRound(gateway, growth, index), await playRound(echo, growth, index)]
        if (index >= 0) {
          ours.push(one)
          bare.push(other)
        }
      }
      rows.push(...rowsOf(growth, ours, bare))
      const { longest, continued, branched, bodyBytes } = ours[0]!
      notes.push(
        `${titles[growth]}: turn ${turns} has ${longest} prompt tokens in a body of ${Math.round(bodyBytes / 1000)} kB; ${continued} of ${conversations * turns} calls continued, ${branched} are roots`,
      )
    }
    notes.push(
      `CPU is user + system of the gateway's whole process, from the socket to the record; ${conversations} conversations a round, ${rounds} rounds after ${warmUps} to warm up; each call samples ${callText(1).split(' ').length} words as a tool call`,
      'bare: an HTTP server that receives the same body, parses it with JSON.parse and answers as much',
    )
    return { rows, notes }
  },
}

const titles: Readonly<Record<Growth, string>> = {
  even: 'equal suffixes of 1,560 tokens',
  bursts: 'suffixes of 100 tokens at turns 2 and 20, long ones between',
}

interface Round extends Reply {
  /** Microseconds of CPU a call, by turn. */
  readonly cost: ReadonlyMap<number, number>
  readonly bodyBytes: number
}

function rowsOf(growth: Growth, ours: readonly Round[], bare: readonly Round[]): BenchRow[] {
  const title = titles[growth]
  const of = (rounds: readonly Round[], value: (cost: ReadonlyMap<number, number>) => number): Spread =>
    spreadOf(rounds.map(({ cost }) => value(cost)))
  const row = (measure: string, unit: string, value: (cost: ReadonlyMap<number, number>) => number): BenchRow => {
    const ourValue = of(ours, value)
    return { measure: `${title}: ${measure}`, unit, better: 'lower', ours: ourValue, peers: { bare: compare(ourValue, of(bare, value)) } }
  }
  const [early, late] = measured
  return [
    ...measured.map((turn) => row(`turn ${turn}`, 'us CPU a call', (cost) => cost.get(turn)!)),
    row(`turn ${late} / turn ${early}`, 'ratio', (cost) => cost.get(late)! / cost.get(early)!),
  ]
}

/** Plays all conversations turn by turn; what a turn costs is the CPU of the process over all of them. */
async function playRound(served: ServedProcess, growth: Growth, index: number): Promise<Round> {
  const open = []
  for (let number = 0; number < conversations; number += 1) {
    const { url } = await served.ask({ do: 'open', rollout: `${growth}-${index}-${number}` })
    const question = text(800, seed(index, 0, number))
    const messages: unknown[] = [
      { role: 'system', content: text(200, 3) },
      { role: 'user', content: question },
    ]
    open.push({ url: url!, number, messages })
  }
  const cost = new Map<number, number>()
  let bodyBytes = 0
  for (let turn = 1; turn <= turns; turn += 1) {
    const before = await served.ask({ do: 'cpu' })
    for (const conversation of open) {
      const body = JSON.stringify({ model: 'policy', messages: conversation.messages, tools })
      bodyBytes = Math.max(bodyBytes, Buffer.byteLength(body))
      const message = (await post(served.agent, conversation.url, body)).choices[0]!.message
      const result = text(resultWords(growth, turn + 1), seed(index, turn, conversation.number))
      conversation.messages.push(message, { role: 'tool', tool_call_id: message.tool_calls[0]!.id, content: result })
    }
    const after = await served.ask({ do: 'cpu' })
    cost.set(turn, (after.cpu! - before.cpu!) / conversations)
  }
  return { ...(await served.ask({ do: 'close' })), cost, bodyBytes }
}

/** Every text is a new one: nothing of it can come from a cache. */
const seed = (round: number, turn: number, conversation: number) => ((round + warmUps) * (turns + 1) + turn) * conversations + conversation

interface Completion {
  readonly choices: readonly { readonly message: { readonly tool_calls: readonly { readonly id: string }[] } }[]
}

async function post(agent: Agent, url: string, body: string): Promise<Completion> {
  const { status, text: answer } = await send(agent, url, body)
  if (status === 200) return JSON.parse(answer) as Completion
  throw new Error(`The gateway answered ${status}: ${answer.slice(0, 300)}`)
}
