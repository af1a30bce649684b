import { fileURLToPath } from 'node:url'
import type { AgentProgram, RolloutWriter } from '@aworld-train/core'
import { createEnvironment } from '@aworld-train/environment'
import { parseLocalConfig } from '@aworld-train/training'
import { expect, it } from 'vitest'
import { localPolicy } from '../policies/local-policy.ts'
import { openStage } from './stage.ts'

const model = fileURLToPath(new URL('../../../../examples/periodic-table/model', import.meta.url))

function openQuietly(program: AgentProgram & { close?(): Promise<void> }, settings: object = {}) {
  const { config } = parseLocalConfig({ engine: { threads: 1, simd: 'plain' }, concurrency: 1, ...settings })
  return openStage({
    models: [model],
    plan: {
      config,
      policies: [
        {
          name: null,
          settings: config.model,
          trainable: true,
          rateFactor: 1,
          model,
          warmUp: null,
          chosen: localPolicy.choose(config, {}, model),
        },
      ],
      seed: 1,
      program,
      agent: { program, directory: '.', module: null, files: [] },
      configDirectory: '.',
    },
    parts: { environment: createEnvironment(), reward: null },
    store: {} as RolloutWriter,
    answers: new Map(),
    onEvent() {},
    signal: new AbortController().signal,
  })
}

it('ends the connections of an agent that holds some', async () => {
  let closed = 0
  const program = {
    agents: [{ name: 'agent', trainable: true }],
    run: async () => ({ answer: null, messages: [] }),
    close: async () => {
      closed += 1
    },
  }
  const stage = await openQuietly(program)
  expect(closed).toBe(0)
  await stage.close()
  expect(closed).toBe(1)
})

/** Sends one call to a stage. Resolves to its answer and the number of calls that reached the engine. */
async function ask(settings: object, content = 'Gold?', answer?: string) {
  const program: AgentProgram = { agents: [{ name: 'agent', trainable: true }], run: async () => ({ answer: null, messages: [] }) }
  const stage = await openQuietly(program, settings)
  try {
    const sampling = { temperature: 1, topP: 1, topK: 0, maxTokens: 2, stop: [], seed: 0 }
    const session = stage.gateway.open({
      rollout: 'a',
      attempt: 0,
      taskId: 'a',
      sample: 0,
      policy: stage.policy.engine.name,
      sampling,
      agents: program.agents,
    })
    const { baseUrl } = session.endpoint('agent')
    const call = { id: 'c', type: 'function', function: { name: 'look', arguments: '{}' } }
    const looked = [
      { role: 'assistant', content: null, tool_calls: [call] },
      { role: 'tool', tool_call_id: 'c', content: answer },
    ]
    const body = JSON.stringify({ model: 'lagre', messages: [{ role: 'user', content }, ...(answer === undefined ? [] : looked)] })
    const response = await fetch(`${baseUrl}/chat/completions`, { method: 'POST', body })
    return { status: response.status, text: await response.text(), calls: stage.engineCalls() }
  } finally {
    await stage.close()
  }
}

it('answers any name with the policy, unless there are frozen models that a name may mean', async () => {
  expect(await ask({})).toMatchObject({ status: 200, calls: 1 })
  const refused = await ask({ models: { large: { baseUrl: 'http://127.0.0.1:9/v1', model: 'large-2026' } } })
  expect(refused).toMatchObject({ status: 404, calls: 0, text: expect.stringContaining('model_not_found') })
  expect(refused.text).toMatch(/lagre.*large.*mean/)
})

it('refuses a prompt of more bytes than the configuration allows', async () => {
  const long = await ask({ model: { maxPromptBytes: 300 } }, 'Gold? '.repeat(50))
  expect(long).toMatchObject({ status: 400, calls: 0, text: expect.stringContaining('a prompt may have 300 (maxPromptBytes)') })
})

it('cuts answers of tools to the tokens that the configuration allows', async () => {
  const promptTokens = async (settings: object) => JSON.parse((await ask(settings, 'Gold?', 'gold '.repeat(60))).text).usage.prompt_tokens
  const [whole, cut] = [await promptTokens({}), await promptTokens({ toolAnswers: { maxTokens: 40, cut: 'tail' } })]
  expect(whole - cut).toBeGreaterThanOrEqual(20)
})

it('refuses agents whose models nobody serves, and a frozen model under the name of the policy', async () => {
  const critic = { name: 'critic', trainable: false, model: 'judge' }
  const program: AgentProgram = { agents: [critic], run: async () => ({ answer: null, messages: [] }) }
  await expect(openQuietly(program)).rejects.toMatchObject({ code: 'CONFIG_INVALID', message: expect.stringContaining('"judge"') })
  const other = { baseUrl: 'http://127.0.0.1:9/v1', model: 'large-2026' }
  const named = { agents: [], run: program.run }
  await expect(openQuietly(named, { models: { model: other } })).rejects.toMatchObject({ message: expect.stringContaining('models.model') })
})
