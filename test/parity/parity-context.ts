import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { AgentTrainer, type AgentTrainerOptions, type RunReport } from 'aworld-train'

/** What the checks of the table share: a temporary folder, and one moved project that is trained on first use. */
export interface ParityContext {
  readonly folder: string
  /** The project in this folder, moved from Python: agent.yaml with `_target_`, verl's YAML, data, reward. */
  readonly project: AgentTrainerOptions
  trained(): Promise<{ readonly trainer: AgentTrainer; readonly report: RunReport }>
}

const here = fileURLToPath(new URL('.', import.meta.url))
const data = fileURLToPath(new URL('data', import.meta.url))

export async function openParityContext(): Promise<ParityContext & AsyncDisposable> {
  const folder = await mkdtemp(join(tmpdir(), 'parity-'))
  const project: AgentTrainerOptions = {
    baseDirectory: here,
    agent: './agent.yaml',
    config: './grpo_trainer.yaml',
    rewardFunc: './reward.ts#exactAnswer',
    trainDataset: join(data, 'train.jsonl'),
    testDataset: join(data, 'test.jsonl'),
    runPath: folder,
    trainEngineName: 'local',
    onEvent() {},
  }
  const train = async () => {
    const trainer = new AgentTrainer(project)
    return { trainer, report: await trainer.train() }
  }
  let training: ReturnType<typeof train> | undefined
  return {
    folder,
    project,
    trained() {
      training ??= train()
      return training
    },
    async [Symbol.asyncDispose]() {
      await training?.catch(() => {})
      await rm(folder, { recursive: true, force: true })
    },
  }
}

interface ModelServer {
  readonly baseUrl: string
  readonly requests: readonly {
    readonly headers: IncomingHttpHeaders
    readonly body: { model: string; messages: { content: string }[]; [key: string]: unknown }
  }[]
}

/** An OpenAI-compatible endpoint whose model answers `re: ` and the last message; closed when `use` ends. */
export async function withModelServer(use: (server: ModelServer) => Promise<void>): Promise<void> {
  const requests: ModelServer['requests'][number][] = []
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const text = Buffer.concat(chunks).toString()
    const body = text.startsWith('{') ? JSON.parse(text) : {}
    requests.push({ headers: request.headers, body })
    if (!request.url?.endsWith('/chat/completions')) {
      response.writeHead(404).end()
      return
    }
    const content = `re: ${body.messages.at(-1).content}`
    response.setHeader('content-type', 'application/json')
    response.end(
      JSON.stringify({
        id: 'completion',
        object: 'chat.completion',
        created: 0,
        model: body.model,
        choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }],
        usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
      }),
    )
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  try {
    await use({ baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`, requests })
  } finally {
    server.closeAllConnections()
    await new Promise((done) => server.close(done))
  }
}
