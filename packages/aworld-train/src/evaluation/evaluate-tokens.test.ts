import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { chatMlTemplate } from '@aworld-train/chat'
import { readRun } from '@aworld-train/store'
import { writeTinyModel } from '@aworld-train/testing'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { createTestServer, sendJson } from '../../../engines/src/remote/testing/http-server.ts'
import { createToyVllm } from '../../../engines/src/remote/testing/vllm-server.ts'
import { runEvaluation } from './run-evaluation.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'aworld-train-tokens-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true, maxRetries: 3 }))

const models = (owner: string) => ({ object: 'list', data: [{ id: 'toy', object: 'model', owned_by: owner, max_model_len: 256 }] })

/** A server of vLLM's shape with its list of models. */
async function startServer(owner: string) {
  const vllm = await createToyVllm()
  const server = await createTestServer((request, response) =>
    request.path === '/v1/models' ? sendJson(response, 200, models(owner)) : vllm.route(request, response),
  )
  return {
    url: server.url,
    async [Symbol.asyncDispose]() {
      await Promise.all([server.close(), vllm.close()])
    },
  }
}

const options = (url: string) => ({
  agent: async (task: { input: unknown }, { baseUrl, apiKey }: { baseUrl: string; apiKey: string }) => {
    const body = JSON.stringify({ model: 'any', messages: [{ role: 'user', content: task.input }] })
    const response = await fetch(`${baseUrl}/chat/completions`, { method: 'POST', headers: { authorization: `Bearer ${apiKey}` }, body })
    return ((await response.json()) as { choices: { message: { content: string } }[] }).choices[0]!.message.content
  },
  dataset: [{ id: 'a', prompt: 'a', answer: 'a' }],
  rewardFunc: () => 1,
  model: `${url}/v1`,
  tokens: join(folder, 'model'),
  config: { sampling: { maxTokens: 4 } },
  runPath: join(folder, 'runs'),
  onEvent: () => {},
})

it('records the tokens that a server of vLLM samples', async () => {
  await writeTinyModel({ directory: join(folder, 'model'), template: chatMlTemplate })
  await using server = await startServer('vllm')
  const report = await runEvaluation(options(server.url))
  expect(report).toMatchObject({ model: `${server.url}/v1#toy`, counts: { modelCalls: { gateway: 1, engine: 1 } } })
  const run = readRun(report.path)
  const [turn] = [...run.episodes()].flatMap(({ trajectories }) => trajectories.flatMap(({ turns }) => turns))
  run.close()
  expect(turn).toMatchObject({ capture: { tokens: 'token-in' } })
  expect(turn!.completionTokenIds.length).toBeGreaterThan(0)
})

it('refuses a server that reports no tokens', async () => {
  await writeTinyModel({ directory: join(folder, 'model'), template: chatMlTemplate })
  await using server = await startServer('llamacpp')
  await expect(runEvaluation(options(server.url))).rejects.toThrow(/vLLM and SGLang sample, and .* is llama.cpp/)
})
