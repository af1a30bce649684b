// A training whose spans go to a backend, and what must hold of those that arrive there.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { RunReport } from '@aworld-train/core'
import { expect } from 'vitest'
import { runCli } from '../../support/run-cli.ts'
import { episodesOf, makeProject } from '../../support/tiny-project.ts'

export interface ReceivedSpan {
  readonly name: string
  readonly scope: string
  /** Whole numbers are text, as JSON of protobuf has them. */
  readonly attributes: Readonly<Record<string, unknown>>
  readonly status: number
  readonly start: number
  readonly end: number
  readonly trace: string
  readonly id: string
  readonly parent: string
}

/** An agent that asks its model, then a tool, then its model again. */
const agent = `
async function run(task, context) {
  const { baseUrl, apiKey, model } = context.policy('agent')
  const headers = { 'content-type': 'application/json', authorization: 'Bearer ' + apiKey }
  const ask = async () => {
    const body = JSON.stringify({ model, messages: [{ role: 'user', content: task.input }] })
    const response = await fetch(baseUrl + '/chat/completions', { method: 'POST', headers, body, signal: context.signal })
    return (await response.json()).choices[0].message.content
  }
  const content = await ask()
  await context.runTool('agent', { id: 'call', name: 'look_up', arguments: '{}' }, async () => ({ content, isError: content !== 'yes' }))
  return { answer: await ask(), messages: [{ role: 'user', content: task.input }] }
}
export const agent = { agents: [{ name: 'agent', trainable: true }], run }
`

const tracing = new URL('tracing.ts', import.meta.url).href

/** Trains below `folder` with spans sent to a backend at `url`, such as `http://127.0.0.1:4318`. */
export async function trainTraced(folder: string, model: string, url: string) {
  const project = await makeProject(folder, model, {
    files: { 'agent.ts': agent },
    definition: { testDataset: './train.jsonl' },
    config: { logging: [] },
  })
  const { code, stderr } = await runCli(['train', project.folder], {
    env: {
      NODE_OPTIONS: `--import=${tracing}`,
      OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${url}/v1/traces`,
    },
  })
  expect(code, stderr).toBe(0)
  const [run] = await project.runs()
  return { report: JSON.parse(await readFile(join(run!, 'report.json'), 'utf8')) as RunReport, episodes: await episodesOf(project) }
}

type Traced = Awaited<ReturnType<typeof trainTraced>>

/** The spans are the tree of every rollout, with the numbers of the run. */
export function expectTree(spans: readonly ReceivedSpan[], { report, episodes }: Traced): void {
  const named = (name: RegExp) => spans.filter((span) => name.test(span.name))
  const [rollouts, attempts, calls, tools, rewards] = [
    /^rollout$/,
    /^invoke_agent agent$/,
    /^chat /,
    /^execute_tool look_up$/,
    /^reward /,
  ].map(named)
  const { modelCalls, toolCalls } = report.counts
  expect([rollouts, attempts, calls, tools, rewards].map((list) => list!.length)).toEqual([
    report.counts.rollouts,
    report.counts.rollouts,
    modelCalls.gateway,
    toolCalls.agent,
    report.counts.rollouts,
  ])
  expect(spans).toHaveLength(3 * report.counts.rollouts + modelCalls.gateway + toolCalls.agent)

  const byId = new Map(spans.map((span) => [span.id, span]))
  const parents = (list: readonly ReceivedSpan[]) => new Set(list.map(({ parent }) => byId.get(parent)?.name ?? null))
  expect(parents(rollouts!)).toEqual(new Set([null]))
  expect(parents([...attempts!, ...rewards!])).toEqual(new Set(['rollout']))
  expect(parents([...calls!, ...tools!])).toEqual(new Set(['invoke_agent agent']))
  expect(new Set(rollouts!.map(({ trace }) => trace)).size).toBe(report.counts.rollouts)
  for (const { trace, parent, start, end, attributes } of spans) {
    const above = byId.get(parent)
    expect(end).toBeGreaterThanOrEqual(start)
    if (above)
      expect([trace, attributes['gen_ai.conversation.id'] ?? null]).toEqual([
        above.trace,
        attributes['gen_ai.conversation.id'] ? above.attributes['gen_ai.conversation.id'] : null,
      ])
  }

  const total = (list: readonly ReceivedSpan[], name: string) => list.reduce((sum, { attributes }) => sum + Number(attributes[name]), 0)
  expect(total(calls!, 'gen_ai.usage.output_tokens')).toBe(report.ledger!.sampled)
  expect(total(attempts!, 'gen_ai.usage.output_tokens')).toBe(report.ledger!.sampled)
  const rewardOf = new Map(
    rollouts!.map(({ attributes }) => [attributes['aworld_train.rollout'], Number(attributes['aworld_train.reward'])]),
  )
  expect(rewardOf).toEqual(new Map(episodes.map(({ rollout, reward }) => [rollout, reward])))
  expect(total(rewards!, 'gen_ai.evaluation.score.value')).toBe(episodes.reduce((sum, { reward }) => sum + reward!, 0))
  const errors = episodes.flatMap((episode) => episode.toolCalls).filter(({ isError }) => isError).length
  expect(tools!.filter(({ status, attributes }) => status === 2 && attributes['error.type'] === 'tool_error')).toHaveLength(errors)
  expect(errors).toBeGreaterThan(0)
}
