import type { ModelCall } from '../call.ts'
import { readObject } from '../dialects/read-fields.ts'
import { badRequest } from '../failure.ts'
import type { FrozenModel } from '../models/model-table.ts'
import { setMembers } from '../pass-through/set-members.ts'
import type { ServedCall } from '../served-call.ts'
import { decode } from '../stages/decode.ts'
import { parseBody } from '../stages/parse-body.ts'
import { frozenApis } from './apis.ts'

/** A request to a third party. */
export interface FrozenRequest {
  readonly body: Buffer
  /** The parsed body. */
  readonly json: unknown
  readonly stream: boolean
  /** The decoded call; `null` if the bytes are passed on and have parts that no policy reads, such as images. */
  readonly call: ModelCall | null
  /** Whether the bytes are in the client's own dialect. */
  readonly same: boolean
  /** Whether the gateway has added the request for usage, which the client must not see. */
  readonly hidesUsage: boolean
}

function understood({ options }: ServedCall): ModelCall | null {
  const { dialect, body, agent } = options
  try {
    return decode(dialect, body, agent.memory)
  } catch {
    return null
  }
}

/** Turns the client's request into one for the model's server. Throws GATEWAY_BAD_REQUEST. */
export function toFrozenRequest(served: ServedCall, model: FrozenModel): FrozenRequest {
  const { dialect, body, agent, parts } = served.options
  const api = frozenApis[model.dialect]
  if (dialect.name !== model.dialect) {
    if (!api.encode) {
      const message = `Model "${model.name}" speaks ${model.dialect} only; ask for it in that API, not in ${dialect.name}.`
      throw badRequest(message, 'model')
    }
    const call = decode(dialect, body, agent.memory)
    parts.hosted.leaveOut(agent.name, call.hosted)
    const translated = Buffer.from(api.encode(call, model.model))
    return { body: translated, json: JSON.parse(translated.toString('utf8')), stream: call.stream, call, same: false, hidesUsage: false }
  }
  const json = readObject(parseBody(body).value, 'body')
  const stream = json['stream'] === true
  const options = (json['stream_options'] ?? {}) as { include_usage?: unknown }
  const hidesUsage = stream && model.dialect === 'chat-completions' && options.include_usage !== true
  const members = {
    model: JSON.stringify(model.model),
    ...(hidesUsage && { stream_options: JSON.stringify({ ...options, include_usage: true }) }),
  }
  return {
    body: setMembers(body, members),
    json: { ...json, model: model.model },
    stream,
    call: understood(served),
    same: true,
    hidesUsage,
  }
}
