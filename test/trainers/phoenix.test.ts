import { spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { expect, it, onTestFinished } from 'vitest'
import { freePort } from '../support/process-group.ts'
import { pythonEnvironment } from '../support/python-environment.ts'
import { makeTinyModel } from '../support/tiny-model.ts'
import { expectTree, type ReceivedSpan, trainTraced } from './otlp/traced-run.ts'

type Value = Readonly<Record<string, unknown>>
interface PhoenixSpan {
  readonly name: string
  readonly attributes: readonly { readonly key: string; readonly value: Value }[]
  readonly status: { readonly code: number }
  readonly start_time_unix_nano: number
  readonly end_time_unix_nano: number
  readonly trace_id: string
  readonly span_id: string
  readonly parent_span_id: string | null
}

/** All spans that Phoenix has, by its own API. */
async function readSpans(url: string): Promise<ReceivedSpan[]> {
  const spans: ReceivedSpan[] = []
  for (let cursor: string | null = ''; cursor !== null; ) {
    const query = new URLSearchParams({ limit: '1000', ...(cursor !== '' && { cursor }) })
    const response = await fetch(`${url}/v1/projects/default/spans/otlpv1?${query}`)
    const page = (await response.json()) as { data: PhoenixSpan[]; next_cursor: string | null }
    for (const span of page.data)
      spans.push({
        ...{
          name: span.name,
          scope: '',
          status: span.status.code,
          trace: span.trace_id,
          id: span.span_id,
          parent: span.parent_span_id ?? '',
        },
        attributes: Object.fromEntries(span.attributes.map(({ key, value }) => [key, Object.values(value).find((each) => each !== null)])),
        ...{ start: span.start_time_unix_nano, end: span.end_time_unix_nano },
      })
    cursor = page.next_cursor
  }
  return spans
}

it('hands the tree of every rollout to Phoenix, with the numbers of the run', async () => {
  const python = await pythonEnvironment({
    name: 'phoenix',
    requirements: fileURLToPath(new URL('otlp/phoenix-requirements.txt', import.meta.url)),
  })
  const folder = await mkdtemp(join(tmpdir(), 'aworld-train-phoenix-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true, maxRetries: 3 }))
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const phoenix = spawn(join(dirname(python), 'phoenix'), ['serve'], {
    stdio: 'ignore',
    env: {
      ...process.env,
      PHOENIX_WORKING_DIR: folder,
      PHOENIX_HOST: '127.0.0.1',
      PHOENIX_PORT: String(port),
      PHOENIX_GRPC_PORT: String(await freePort()),
      PHOENIX_TELEMETRY_ENABLED: 'false',
      PHOENIX_ALLOW_EXTERNAL_RESOURCES: 'false',
    },
  })
  onTestFinished(() => void phoenix.kill('SIGKILL'))
  const isUp = () =>
    fetch(`${url}/healthz`).then(
      ({ ok }) => ok,
      () => false,
    )
  const model = await makeTinyModel(join(folder, 'model'))
  while (!(await isUp())) {
    expect(phoenix.exitCode).toBe(null)
    await sleep(500)
  }
  const traced = await trainTraced(folder, model, url)
  // Phoenix answers before it has written what it was sent.
  const { rollouts, modelCalls, toolCalls } = traced.report.counts
  const expected = 3 * rollouts + modelCalls.gateway + toolCalls.agent
  await expect.poll(async () => (await readSpans(url)).length, { timeout: 60_000, interval: 1_000 }).toBe(expected)
  expectTree(await readSpans(url), traced)
}, 600_000)
