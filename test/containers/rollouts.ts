import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Agent, toAgentProgram } from '@aworld-train/agent'
import { chatMlTemplate, loadChatModel } from '@aworld-train/chat'
import type { Episode, RolloutRequest, RunEvent } from '@aworld-train/core'
import { createEnvironment } from '@aworld-train/environment'
import { createGateway } from '@aworld-train/gateway'
import { createRolloutRunner } from '@aworld-train/rollout'
import { openRunStore } from '@aworld-train/store'
import { scriptedEngine, writeTinyModel } from '@aworld-train/testing'
import type { RunningContainer } from './container.ts'

const request: RolloutRequest = {
  version: 1,
  key: 'train/0',
  task: { version: 1, id: 'task', hash: 'hash', input: 'Run the command.', data: {}, dataSource: 'test', extraInfo: {} },
  ...{ group: 'task', sample: 0, split: 'train', policy: 'policy' },
  sampling: { temperature: 1, topP: 1, topK: 0, maxTokens: 512, stop: [], seed: 0 },
  limits: {},
}

/** One rollout, whose policy runs a command in the environment and then says "done". `onEvent` has what the runner tells. */
export async function rollOut(
  { url, token }: Pick<RunningContainer, 'url' | 'token'>,
  command: string,
  onEvent: (event: RunEvent) => void = () => {},
): Promise<Episode> {
  await using stack = new AsyncDisposableStack()
  const directory = stack.adopt(await mkdtemp(join(tmpdir(), 'containers-rollout-')), (each) => rm(each, { recursive: true }))
  const model = await writeTinyModel({ directory, template: chatMlTemplate })
  const chat = await loadChatModel({ directory, stopTokenIds: model.stopTokenIds })
  const call = JSON.stringify({ name: 'terminal-server__execute_command', arguments: { command } })
  const engine = scriptedEngine({
    model,
    script: ({ promptTokenIds }) => {
      const prompt = chat.decode([...promptTokenIds], { skipSpecialTokens: false })
      const text = prompt.includes('<|im_start|>tool') ? 'done' : `<tool_call>\n${call}\n</tool_call>`
      return { tokenIds: [...chat.encode(text), ...model.stopTokenIds] }
    },
  })
  stack.defer(() => engine.close())
  const gateway = stack.adopt(
    await createGateway({ models: { policy: { kind: 'token', engine, chat } }, aliases: { '*': 'policy' }, seed: 1 }),
    (each) => each.close(),
  )
  const environment = stack.adopt(createEnvironment({ baseDirectory: directory }), (each) => each.close())
  const store = stack.adopt(await openRunStore({ path: join(directory, 'run') }), (each) => each.close())
  const headers = { Authorization: `Bearer ${token}`, MCP_SERVERS: 'terminal-server' }
  const agent = new Agent({ name: 'clerk', mcpConfig: { mcpServers: { 'aworld-mcp': { type: 'streamable-http', url, headers } } } })
  const runner = stack.adopt(
    createRolloutRunner({
      ...{ program: toAgentProgram(agent), gateway, environment, store, onEvent },
      reward: { name: 'any', score: async () => ({ reward: 1, scores: {} }), close: async () => {} },
      answerKey: (taskId) => ({ version: 1, taskId, groundTruth: 'done' }),
    }),
    (each) => each.close(),
  )
  const [episode] = await runner.runAll([request], new AbortController().signal)
  return episode!
}
