import { spawn } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { request } from 'undici'
import { freePort, stopGroup } from '../../support/process-group.ts'
import { pythonEnvironment } from '../../support/python-environment.ts'

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url))
const extension = here('../../../packages/engines/python')

export interface VllmServer {
  readonly url: string
  /** Ends the server and its workers, the harder way where they do not listen. */
  stop(): Promise<void>
}

export interface StartVllmOptions {
  readonly model: string
  readonly served: string
  readonly contextLength: number
  readonly readyWithinMs: number
}

/**
 * Starts vLLM on CPU over a model folder, in float32 and without compiling, with the routes that training needs. Start-up is the
 * imports of three Python processes: a minute or two on a quiet machine.
 */
export async function startVllm({ model, served, contextLength, readyWithinMs }: StartVllmOptions): Promise<VllmServer> {
  const python = await pythonEnvironment({ name: 'vllm', requirements: here('requirements.txt'), overrides: here('overrides.txt') })
  const port = await freePort()
  const { NODE_OPTIONS: _options, ...environment } = process.env
  const child = spawn(
    python,
    [
      ...['-m', 'vllm.entrypoints.openai.api_server', '--host', '127.0.0.1', '--port', `${port}`],
      ...['--model', model, '--served-model-name', served, '--max-model-len', `${contextLength}`],
      ...['--dtype', 'float32', '--enforce-eager', '--max-num-seqs', '64', '--generation-config', 'vllm'],
      ...['--logprobs-mode', 'processed_logprobs', '--enable-scale-out'],
      ...['--enable-auto-tool-choice', '--tool-call-parser', 'hermes'],
      ...['--enable-lora', '--max-lora-rank', '8', '--max-loras', '2'],
      ...['--worker-extension-cls', 'aworld_train_vllm.WeightSync'],
    ],
    {
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        ...environment,
        PYTHONPATH: extension,
        PYTHONDONTWRITEBYTECODE: '1',
        VLLM_CPU_KVCACHE_SPACE: '1',
        VLLM_SERVER_DEV_MODE: '1',
        VLLM_ALLOW_RUNTIME_LORA_UPDATING: 'True',
        VLLM_NO_USAGE_STATS: '1',
        HF_HUB_OFFLINE: '1',
        // What vLLM compiles even so needs a C++ compiler, and a path without blanks.
        TORCHDYNAMO_DISABLE: '1',
      },
    },
  )
  let log = ''
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding('utf8').on('data', (text: string) => {
      log = (log + text).slice(-20_000)
    })
  const url = `http://127.0.0.1:${port}`
  const server: VllmServer = { url, stop: () => stopGroup(child) }
  try {
    for (const end = Date.now() + readyWithinMs; ; await sleep(500)) {
      if (child.exitCode !== null || child.signalCode !== null) throw new Error(`vLLM ended before it was ready:\n${log}`)
      if (Date.now() > end) throw new Error(`vLLM was not ready after ${readyWithinMs} ms:\n${log}`)
      const status = await request(`${url}/health`, { signal: AbortSignal.timeout(2000) }).then(
        async ({ statusCode, body }) => {
          await body.dump()
          return statusCode
        },
        () => 0,
      )
      if (status === 200) return server
    }
  } catch (error) {
    await server.stop()
    throw error
  }
}
