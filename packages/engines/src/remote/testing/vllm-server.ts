import { createTestServer, type Route, sendJson, type TestServer } from './http-server.ts'
import { createToyState, goneSignal, labelSpans, type ToySample, type ToyState } from './model-server.ts'
import { toyModel } from './toy-policy.ts'

export interface ToyServer extends TestServer {
  readonly state: ToyState
  /** Ends and restarts with its initial weights. */
  restart(): Promise<void>
  /** The routes, for a test that answers some of them itself. */
  readonly route: Route
}

interface Params {
  readonly max_tokens: number
  readonly temperature: number
  readonly seed: number
  readonly stream_interval?: number
}

/** A small server with the routes and shapes of the recorded vLLM 0.32. */
export async function createToyVllm(): Promise<ToyServer> {
  const state = createToyState()
  let boot = 1

  const generate: Route = async ({ json, path }, response) => {
    const completions = path === '/v1/completions'
    const ids = (completions ? json['prompt'] : json['token_ids']) as number[]
    const params = (completions ? json : json['sampling_params']) as Params
    const adapter = json['model'] === toyModel.name ? undefined : String(json['model'])
    if (adapter !== undefined && !state.adapters.has(adapter)) {
      const message = `The model \`${adapter}\` does not exist. Valid aliases: toy.`
      return sendJson(response, 404, { error: { message, type: 'NotFoundError', param: 'model', code: 404 } })
    }
    response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' })
    response.flushHeaders()
    const all: ToySample[] = []
    let sent = 0
    const draws = state.draw(
      { promptTokenIds: ids, maxTokens: params.max_tokens, temperature: params.temperature, seed: params.seed, adapter },
      goneSignal(response),
    )
    const send = (finish: string | null) => {
      const fresh = all.slice(sent)
      const first = sent === 0
      sent = all.length
      const tokens = { index: 0, finish_reason: finish, stop_reason: null, token_ids: fresh.map(({ id }) => id) }
      const choice = completions
        ? {
            ...tokens,
            text: '',
            logprobs: { token_logprobs: fresh.map(({ logprob }) => logprob) },
            prompt_token_ids: first ? ids : null,
          }
        : {
            ...tokens,
            weight_versions: finish === null ? null : labelSpans(all),
            logprobs: { content: fresh.map(({ id, logprob }) => ({ token_id: id, logprob, rank: 1 })) },
          }
      response.write(`data: ${JSON.stringify({ id: 'toy', choices: [choice] })}\n\n`)
    }
    for (;;) {
      const { done, value } = await draws.next()
      if (done) {
        send(value)
        break
      }
      all.push(value)
      if (all.length === 1 || all.length - sent >= (params.stream_interval ?? 1)) send(null)
    }
    const usage = { prompt_tokens: ids.length, completion_tokens: all.length, prompt_tokens_details: { cached_tokens: 3 } }
    response.write(`data: ${JSON.stringify({ id: 'toy', choices: [], usage })}\n\n`)
    response.end('data: [DONE]\n\n')
  }

  const load: Route = ({ json }, response) => {
    const weights = state.load(String((json['args'] as string[] | undefined)?.[0]))
    if (weights === null) return sendJson(response, 200, { results: [{ error: 'it is not a folder on this machine' }] })
    state.weights = weights
    sendJson(response, 200, { results: [{ repacked: 2 }] })
  }

  const routes: Readonly<Record<string, Route>> = {
    '/health': (_request, response) => void response.writeHead(200).end(),
    '/weight_info': (_request, response) => sendJson(response, 200, { weight_version: state.label }),
    '/metrics': (_request, response) => void response.writeHead(200).end(`process_start_time_seconds ${boot}.5e+09\n`),
    '/inference/v1/generate': generate,
    '/v1/completions': generate,
    '/pause': ({ query }, response) => {
      if (query.get('mode') === 'abort') state.abortAll()
      state.paused = true
      sendJson(response, 200, { status: 'paused' })
    },
    '/resume': (_request, response) => {
      state.paused = false
      sendJson(response, 200, { status: 'resumed' })
    },
    '/collective_rpc': load,
    '/update_weight_version': ({ json }, response) => {
      state.label = String(json['new_version'])
      sendJson(response, 200, { success: true, new_version: state.label })
    },
    '/reset_prefix_cache': (_request, response) => sendJson(response, 200, { success: true }),
    '/v1/load_lora_adapter': ({ json }, response) => {
      state.adapters.set(String(json['lora_name']), state.load(String(json['lora_path'])) ?? 0)
      response.writeHead(200).end('"Success: LoRA adapter added successfully."')
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
      boot++
      await server.rise()
    },
  }
}
