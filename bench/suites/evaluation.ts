import { mkdtemp, rm } from 'node:fs/promises'
import { availableParallelism, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { runEvaluation } from 'aworld-train'
import { type Measured, measure } from '../executor/measure.ts'
import { startScript } from '../gateway/peers.ts'
import { type BenchRow, type BenchSuite, compare, spreadOf } from '../suite.ts'

const [tasks, samples, callsOfRollout, slots] = [120, 4, 3, 32] as const
const rollouts = tasks * samples

/** How much longer an evaluation may take than its calls, by the milliseconds of an answer; `null` is only reported. */
const bounds: ReadonlyMap<number, number | null> = new Map([
  [500, 1.1],
  [50, null],
])

interface Endpoint {
  readonly baseUrl: string
  readonly apiKey: string
}

/** What a rollout does: asks `callsOfRollout` times, each answer of the model after `waitMs`. */
async function solve(question: string, waitMs: number, { baseUrl, apiKey }: Endpoint): Promise<string> {
  const messages: object[] = []
  for (let call = 0; call < callsOfRollout; call += 1) {
    messages.push({ role: 'user', content: question })
    const response = await fetch(`${baseUrl}/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
      // The engine reads from the user's name how long it is to take.
      body: JSON.stringify({ model: 'bench', user: `d${waitMs}`, messages }),
    })
    if (!response.ok) throw new Error(await response.text())
    const { choices } = (await response.json()) as { choices: { message: { content: string } }[] }
    messages.push({ role: 'assistant', content: choices[0]!.message.content })
  }
  return 'done'
}

const questions = Array.from({ length: tasks }, (_, index) => `What is the answer to question ${index}?`)

/** The same calls without us, as many at once. */
async function callDirectly(waitMs: number, baseUrl: string): Promise<void> {
  const waiting = questions.flatMap((question) => Array.from({ length: samples }, () => question))
  const lane = async () => {
    for (let question = waiting.pop(); question !== undefined; question = waiting.pop())
      await solve(question, waitMs, { baseUrl, apiKey: 'none' })
  }
  await Promise.all(Array.from({ length: slots }, lane))
}

async function evaluate(waitMs: number, baseUrl: string, runPath: string, count: number = tasks): Promise<void> {
  const { failed, scored } = await runEvaluation({
    agent: ({ input }, context) => solve(String(input), waitMs, context),
    dataset: questions.slice(0, count).map((prompt) => ({ prompt, answer: 'done' })),
    rewardFunc: (_source, answer, truth) => Number(answer === truth),
    model: `${baseUrl}#bench`,
    samples,
    concurrency: slots,
    runPath,
    fresh: true,
    onEvent: () => {},
  })
  if (failed > 0 || scored.rollouts !== count * samples)
    throw new Error(`${failed} rollouts failed, and ${scored.rollouts} were scored; end what else runs here.`)
}

/** An evaluation beside the calls of its agents made directly: `npm run bench -- evaluation [rounds]`, three rounds by default. */
export const evaluation: BenchSuite = {
  async run(args) {
    const rounds = Number(args[0] ?? 3)
    const rows: BenchRow[] = []
    const folder = await mkdtemp(join(tmpdir(), 'bench-evaluation-'))
    await using upstream = await startScript<{ port: number }>('upstream.ts', ['--tokens=8'])
    const baseUrl = `http://127.0.0.1:${upstream.line.port}/v1`
    try {
      // Modules are loaded once in a process.
      await evaluate(0, baseUrl, folder, 2)
      for (const [waitMs, atMost] of bounds) {
        const ours: Measured[] = []
        const direct: Measured[] = []
        for (let round = 0; round < rounds; round += 1) {
          ours.push((await measure(() => evaluate(waitMs, baseUrl, folder)))[1])
          direct.push((await measure(() => callDirectly(waitMs, baseUrl)))[1])
        }
        rows.push(...rowsOf(waitMs, atMost, ours, direct))
      }
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
    return {
      rows,
      notes: [
        `${rollouts} rollouts of ${callsOfRollout} calls, ${slots} at once, from the plan to the report; directly: the same calls by the same client in the same process, in turns with the evaluation, ${rounds} rounds; CPU includes the agents and the process of the model; load average at the end ${loadavg()[0]!.toFixed(1)} on ${availableParallelism()} cores`,
      ],
    }
  },
}

function rowsOf(waitMs: number, atMost: number | null, ours: readonly Measured[], direct: readonly Measured[]): BenchRow[] {
  const row = (measured: string, unit: string, value: (one: Measured) => number, bound?: number): BenchRow => {
    const spread = spreadOf(ours.map(value))
    return {
      measure: `answers of ${waitMs} ms: ${measured}`,
      unit,
      better: 'lower',
      ours: spread,
      peers: { directly: compare(spread, spreadOf(direct.map(value))) },
      ...(bound !== undefined && { bound: { atMost: bound, of: 'directly' } }),
    }
  }
  return [
    row(`${rollouts} rollouts`, 's', ({ seconds }) => seconds, atMost ?? undefined),
    row('CPU', 'ms a rollout', ({ cpuSeconds }) => (1000 * cpuSeconds) / rollouts),
  ]
}
