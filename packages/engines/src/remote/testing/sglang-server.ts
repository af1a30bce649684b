import { createTestServer, type Route, sendJson } from './http-server.ts'
import { createToyState, goneSignal, labelSpans, type ToySample } from './model-server.ts'
import type { ToyServer } from './vllm-server.ts'

interface Params {
  readonly max_new_tokens: number
  readonly temperature: number
  readonly sampling_seed: number
  readonly stream_interval?: number
}

/** A small server with routes and shapes of SGLang's source (entrypoints/http_server.py, managers/tokenizer_manager.py). */
export async function createToySglang({ incremental = false } = {}): Promise<ToyServer> {
  const state = createToyState()
  const success = (response: Parameters<Route>[1], message = 'Succeeded.') => sendJson(response, 200, { success: true, message })

  const generate: Route = async ({ json }, response) => {
    const ids = json['input_ids'] as number[]
    const params = json['sampling_params'] as Params
    response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' })
    response.flushHeaders()
    const all: ToySample[] = []
    let sent = 0
    const draws = state.draw(
      {
        promptTokenIds: ids,
        maxTokens: params.max_new_tokens,
        temperature: params.temperature,
        seed: params.sampling_seed,
        adapter: json['lora_path'] as string | undefined,
      },
      goneSignal(response),
    )
    const send = (finish: object | null) => {
      const fresh = incremental ? all.slice(sent) : all
      sent = all.length
      const meta = {
        id: 'toy',
        finish_reason: finish,
        prompt_tokens: ids.length,
        completion_tokens: all.length,
        cached_tokens: 3,
        output_token_logprobs: fresh.map(({ id, logprob }) => [logprob, id, null]),
        output_token_logprobs_length: all.length,
        weight_version: all.at(-1)?.label ?? state.label,
        weight_versions: labelSpans(all),
      }
      response.write(`data: ${JSON.stringify({ text: '', output_ids: fresh.map(({ id }) => id), meta_info: meta })}\n\n`)
    }
    for (;;) {
      const { done, value } = await draws.next()
      if (done) {
        const ends = { stop: { type: 'stop', matched: 63 }, length: { type: 'length', length: all.length }, abort: { type: 'abort' } }
        send(ends[value])
        break
      }
      all.push(value)
      if (all.length === 1 || all.length - sent >= (params.stream_interval ?? 1)) send(null)
    }
    response.end('data: [DONE]\n\n')
  }

  const routes: Readonly<Record<string, Route>> = {
    '/health': (_request, response) => void response.writeHead(200).end(),
    '/model_info': (_request, response) => sendJson(response, 200, { model_path: 'toy', weight_version: state.label }),
    '/generate': generate,
    '/pause_generation': ({ json }, response) => {
      if (json['mode'] === 'abort') state.abortAll()
      state.paused = true
      sendJson(response, 200, { status: 'ok', message: 'Generation paused successfully.' })
    },
    '/continue_generation': (_request, response) => {
      state.paused = false
      sendJson(response, 200, { status: 'ok', message: 'Generation continued successfully.' })
    },
    '/update_weights_from_disk': ({ json }, response) => {
      const weights = state.load(String(json['model_path']))
      if (weights === null) return sendJson(response, 400, { success: false, message: 'Failed to get weights iterator.' })
      state.weights = weights
      state.label = String(json['weight_version'])
      success(response)
    },
    '/update_weight_version': ({ json }, response) => {
      if (json['abort_all_requests'] !== false) state.abortAll()
      state.label = String(json['new_version'])
      success(response)
    },
    '/load_lora_adapter': ({ json }, response) => {
      const name = String(json['lora_name'])
      if (state.adapters.has(name)) return sendJson(response, 400, { success: false, error_message: `${name} is loaded already` })
      state.adapters.set(name, state.load(String(json['lora_path'])) ?? 0)
      success(response)
    },
    '/unload_lora_adapter': ({ json }, response) => {
      if (!state.adapters.delete(String(json['lora_name']))) return sendJson(response, 400, { success: false, error_message: 'not loaded' })
      success(response)
    },
  }
  const route: Route = (request, response) => {
    const found = routes[request.path]
    return found ? found(request, response) : sendJson(response, 404, { detail: 'Not Found' })
  }
  const server = await createTestServer(route)
  return {
    ...server,
    state,
    route,
    async restart() {
      await server.die()
      Object.assign(state, { label: 'default', weights: 0, paused: false })
      state.adapters.clear()
      await server.rise()
    },
  }
}
