import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { chatMlTemplate, loadChatModel } from '@aworld-train/chat'
import type { Launcher, LauncherEngine, RolloutRequest } from '@aworld-train/core'
import { createEnvironment } from '@aworld-train/environment'
import { createGateway } from '@aworld-train/gateway'
import { openRunStore } from '@aworld-train/store'
import { type ExecutorCoordinator, scriptedEngine, writeTinyModel } from '@aworld-train/testing'
import { ExecutorSettings, localEngine, openAgentSide, openExecutor } from '@aworld-train/training'
import { launcherEngines, loadAgent, workerEntry } from 'aworld-train'

/** This agent reports its process, waits if its task says so, and asks its policy once. */
const agentText = `import { appendFileSync, existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
const file = (name) => fileURLToPath(new URL('./' + name, import.meta.url))
export async function agent(task, context) {
  const secret = Object.keys(process.env).find((name) => /^AWORLD_TRAIN_(LAUNCH|.*TOKEN)$/.test(name))
  if (secret) throw new Error('an agent and its tools can read the token of the coordinator: ' + secret)
  appendFileSync(file(task.id + '.begun'), process.pid + '\\n')
  while (task.input === 'Wait.' && !existsSync(file(task.id + '.open'))) {
    await new Promise((resolve) => setTimeout(resolve, 20))
    context.signal.throwIfAborted()
  }
  const { baseUrl, apiKey, model } = context.policy()
  const body = JSON.stringify({ model, messages: [{ role: 'user', content: task.id }] })
  const headers = { authorization: 'Bearer ' + apiKey, 'content-type': 'application/json' }
  const response = await fetch(baseUrl + '/chat/completions', { method: 'POST', headers, body, signal: context.signal })
  if (!response.ok) throw new Error(await response.text())
  const { choices } = await response.json()
  return { answer: choices[0].message.content, messages: [] }
}
`

/** Opens every real part of a coordinator, before an engine that answers with the end of the prompt. `folder` is empty. */
export async function openCoordinator(folder: string, executor: object): Promise<ExecutorCoordinator> {
  await using stack = new AsyncDisposableStack()
  const directory = join(folder, 'model')
  await mkdir(directory, { recursive: true })
  await writeFile(join(folder, 'agent.ts'), agentText)
  const model = await writeTinyModel({ directory, template: chatMlTemplate })
  const chat = await loadChatModel({ directory, stopTokenIds: model.stopTokenIds })
  const engine = stack.adopt(
    scriptedEngine({ model, script: ({ promptTokenIds }) => ({ tokenIds: [...promptTokenIds.slice(-12, -8), ...model.stopTokenIds] }) }),
    (each) => each.close(),
  )
  const gateway = stack.adopt(
    await createGateway({ models: { policy: { kind: 'token', engine, chat } }, aliases: { '*': 'policy' }, seed: 1 }),
    (each) => each.close(),
  )
  const store = stack.adopt(await openRunStore({ path: join(folder, 'run') }), (each) => each.close())
  const agent = await loadAgent('./agent.ts#agent', folder)
  const warnings: string[] = []
  let launcher: Launcher | null = null
  /** The engines, with the coordinator's launcher exposed. */
  const engines = [localEngine, ...launcherEngines].map(
    (each): LauncherEngine => ({ ...each, create: (launch) => (launcher = each.create(launch)) }),
  )
  const workers = await openExecutor(stack, {
    settings: ExecutorSettings.parse({ graceMs: 200, ...executor }),
    agent,
    engines,
    directory: folder,
    entry: workerEntry,
    onWarning: ({ message }) => warnings.push(message),
  })
  const runner = openAgentSide(stack, {
    program: agent.program,
    gateway,
    store,
    reward: null,
    answers: null,
    concurrency: 64,
    onEvent() {},
    environment: stack.adopt(createEnvironment({ baseDirectory: folder }), (each) => each.close()),
    ...(workers && { workers }),
  })
  const owned = stack.move()
  return {
    launcher,
    warnings,
    run: (key, { waits = false, signal = new AbortController().signal } = {}) => runner.run(requestOf(key, waits), signal),
    begun: (key) => begun(folder, key),
    release: (key) => writeFile(join(folder, `${key}.open`), ''),
    close: () => owned.disposeAsync(),
  }
}

/** Numbers of the processes in which a rollout has begun. */
export const begun = async (folder: string, key: string): Promise<number[]> =>
  (await readFile(join(folder, `${key}.begun`), 'utf8').catch(() => '')).split('\n').filter(Boolean).map(Number)

const requestOf = (key: string, waits: boolean): RolloutRequest => ({
  version: 1,
  key,
  task: { version: 1, id: key, hash: key, input: waits ? 'Wait.' : 'Go on.', data: {}, dataSource: 'exam', extraInfo: {} },
  group: key,
  sample: 0,
  split: 'train',
  policy: 'policy',
  limits: {},
  sampling: { temperature: 1, topP: 1, topK: 0, maxTokens: 16, stop: [], seed: 0 },
})
