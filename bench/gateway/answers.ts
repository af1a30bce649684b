export interface AnswerSize {
  readonly promptTokens: number
  readonly tokens: number
  /** A call of the tool `step`, instead of text; its arguments as JSON. */
  readonly toolCall?: { readonly id: string; readonly arguments: string }
}

/** Ids follow from their position, so that a longer prompt goes on from a shorter one and its completion, as in a conversation. */
const idsAt = (from: number, count: number) => Array.from({ length: count }, (_, index) => ((from + index) * 7919) % 150_000)
const logprob = (index: number) => ({ token: ` word${index}`, logprob: -0.0123456 - index / 1000, bytes: [32, 119, 111], top_logprobs: [] })

/** An answer in the form that vLLM 0.32 gives with `return_token_ids` and `logprobs`. */
export function completionJson({ promptTokens, tokens, toolCall }: AnswerSize): string {
  const called = toolCall !== undefined
  const calls = called ? [{ id: toolCall.id, type: 'function', function: { name: 'step', arguments: toolCall.arguments } }] : []
  const content = Array.from({ length: tokens }, (_, index) => ` word${index}`).join('')
  return JSON.stringify({
    id: 'chatcmpl-bench',
    object: 'chat.completion',
    created: 1_760_000_000,
    model: 'bench',
    choices: [
      {
        index: 0,
        message: { role: 'assistant', content: called ? null : content, refusal: null, tool_calls: calls },
        logprobs: { content: Array.from({ length: tokens }, (_, index) => logprob(index)) },
        finish_reason: called ? 'tool_calls' : 'stop',
        stop_reason: null,
        token_ids: idsAt(promptTokens, tokens),
      },
    ],
    usage: { prompt_tokens: promptTokens, total_tokens: promptTokens + tokens, completion_tokens: tokens },
    prompt_token_ids: idsAt(0, promptTokens),
  })
}

/** The same answer as server-sent events, one a token; the prompt's ids stand in the first. */
export function completionChunks({ promptTokens, tokens }: AnswerSize): string[] {
  const event = (choices: readonly object[], extra: object = {}) =>
    `data: ${JSON.stringify({ id: 'chatcmpl-bench', object: 'chat.completion.chunk', created: 1_760_000_000, model: 'bench', choices, ...extra })}\n\n`
  const ids = idsAt(promptTokens, tokens)
  const choice = (delta: object, extra: object = {}) => ({ index: 0, delta, logprobs: null, finish_reason: null, ...extra })
  return [
    event([choice({ role: 'assistant', content: '' })], { prompt_token_ids: idsAt(0, promptTokens) }),
    ...ids.map((id, index) =>
      event([
        choice(
          { content: ` word${index}` },
          {
            logprobs: { content: [logprob(index)] },
            token_ids: [id],
            finish_reason: index === tokens - 1 ? 'stop' : null,
          },
        ),
      ]),
    ),
    'data: [DONE]\n\n',
  ]
}

/** The stream of `/inference/v1/generate` of vLLM 0.32: eight tokens an event. */
export function generateChunks(tokens: number): string[] {
  const perEvent = 8
  const events: string[] = []
  for (let from = 0; from < tokens; from += perEvent) {
    const count = Math.min(perEvent, tokens - from)
    const indexes = Array.from({ length: count }, (_, index) => from + index)
    const choice = {
      index: 0,
      token_ids: indexes.map((index) => 40 + (index % 60)),
      logprobs: {
        content: indexes.map((index) => ({
          token: `token_id:${40 + (index % 60)}`,
          logprob: -0.5 - index / 1000,
          bytes: null,
          top_logprobs: [],
        })),
      },
      finish_reason: from + count >= tokens ? 'length' : null,
    }
    events.push(`data: ${JSON.stringify({ request_id: 'bench', choices: [choice] })}\n\n`)
  }
  return [...events, 'data: [DONE]\n\n']
}
