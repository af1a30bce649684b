import type { ServerResponse } from 'node:http'
import type { CompletionDelta } from '@aworld-train/chat'
import { createEventReader, type Message, preciseNow, TrainError, toTrainError } from '@aworld-train/core'
import type { Redact } from '@aworld-train/http'
import { type AnswerDecoder, fieldsOf, type ServerAnswer, textOf } from '../dialects/server-answer.ts'
import { isStream } from '../pass-through/pass-on.ts'
import { onlyUsage } from '../pass-through/usage-filter.ts'
import { type Answer, sendText, startStream } from '../stages/encode.ts'
import type { FrozenApi } from './apis.ts'
import type { FrozenHandler } from './frozen-client.ts'
import type { FrozenRequest } from './frozen-request.ts'

export interface FrozenAnswerOptions {
  /** The name of the model, for errors. */
  readonly name: string
  readonly api: FrozenApi
  readonly request: FrozenRequest
  readonly redact: Redact
  /** Called once, with the name of the model in the answer. What it throws ends the call. */
  readonly onModel: (answered: string | null) => void
  readonly response: ServerResponse
  /** The answer in the client's dialect, if it speaks another one. */
  readonly translated: Answer | null
  readonly onFirst: () => void
}

const charactersOf = (delta: CompletionDelta) =>
  delta.type === 'tool-call' ? delta.call.name.length + delta.call.arguments.length : delta.text.length

/** The model that an event of a stream names, in the place where its API has it; `null` in most events. */
function modelOf(event: string): string | null {
  for (const { data } of createEventReader().push(Buffer.from(event))) {
    if (!data.includes('"model"')) continue
    try {
      const json = fieldsOf(JSON.parse(data))
      const model = [json, fieldsOf(json['response']), fieldsOf(json['message'])].map((each) => textOf(each['model'])).find(Boolean)
      if (model !== undefined) return model
    } catch {
      // The decoder says what is wrong with it.
    }
  }
  return null
}

function withoutKey(answer: ServerAnswer, redact: Redact): ServerAnswer {
  const text = JSON.stringify(answer.completion.message)
  const clean = redact(text)
  return clean === text ? answer : { ...answer, completion: { ...answer.completion, message: JSON.parse(clean) as Message } }
}

/** An answer of a third party on its way. It is passed on event by event without the key, kept as text, and read for the record. */
export class FrozenAnswer implements FrozenHandler {
  readonly #options: FrozenAnswerOptions
  readonly #text = new TextDecoder()
  readonly #kept: string[] = []
  #contentType = 'application/json'
  #decoder: AnswerDecoder | null = null
  #rest = ''
  #failure: Error | null = null
  #answer: ServerAnswer | null = null
  #saidCharacters = 0
  #isNamed = false
  #sentAt = preciseNow()

  constructor(options: FrozenAnswerOptions) {
    this.#options = options
  }

  get contentType(): string {
    return this.#contentType
  }

  /** When its request was sent last, in Unix milliseconds. */
  get sentAt(): number {
    return this.#sentAt
  }

  onSend(): void {
    this.#sentAt = preciseNow()
  }

  /** Characters that a stream has sent, including reasoning and calls. */
  saidCharacters(): number {
    return this.#saidCharacters
  }

  /** The text received so far, without the key. */
  text(): string {
    return this.#kept.join('')
  }

  onHead(contentType: string): void {
    this.#contentType = contentType
    const keepsEntries = this.#options.translated !== null && this.#options.request.call?.wants.logprobs !== null
    if (isStream(contentType)) this.#decoder = this.#options.api.createDecoder(keepsEntries)
    const { response, translated } = this.#options
    if (this.#decoder && !translated) startStream(response, contentType)
  }

  onData(chunk: Buffer, resume: () => void): boolean {
    this.#options.onFirst()
    this.#rest += this.#text.decode(chunk, { stream: true })
    if (!this.#decoder) return true
    let free = true
    for (let end = /\r?\n\r?\n/.exec(this.#rest); end; end = /\r?\n\r?\n/.exec(this.#rest)) {
      const event = this.#rest.slice(0, end.index + end[0].length)
      this.#rest = this.#rest.slice(event.length)
      free = this.#pass(this.#options.redact(event)) && free
    }
    if (free) return true
    this.#options.response.once('drain', resume)
    return false
  }

  /** Reads the whole answer once it has arrived. Throws FROZEN_MODEL_FAILED if it cannot be read. */
  read(): ServerAnswer {
    const { name, redact, api, translated } = this.#options
    try {
      if (this.#failure) throw this.#failure
      const rest = redact(this.#rest + this.#text.decode())
      this.#rest = ''
      if (this.#decoder) {
        if (rest !== '') this.#pass(rest)
        const { piece, answer } = this.#decoder.finish()
        if (piece) translated?.piece(piece)
        // A key whose pieces came in several events can be found only once all have come.
        this.#answer = withoutKey(answer, redact)
        if (!this.#isNamed) this.#name(answer.model)
      } else {
        this.#kept.push(rest)
        this.#answer = withoutKey(api.decode(rest), redact)
        this.#name(this.#answer.model)
      }
      return this.#answer
    } catch (cause) {
      const { code, message } = toTrainError(cause, 'FROZEN_MODEL_FAILED')
      const what = code === 'FROZEN_MODEL_FAILED' ? message : `Model "${name}" gave no usable answer. ${message}`
      throw new TrainError('FROZEN_MODEL_FAILED', redact(what))
    }
  }

  end(): void {
    const { response, translated } = this.#options
    if (!translated) sendText(response, 200, this.#contentType || 'application/json', this.#decoder ? '' : this.text())
    else if (this.#answer) translated.end(this.#answer.completion)
  }

  #name(model: string | null): void {
    this.#isNamed = true
    this.#options.onModel(model)
  }

  #pass(event: string): boolean {
    const { response, translated, request } = this.#options
    this.#kept.push(event)
    if (this.#failure) return true
    const model = this.#isNamed ? null : modelOf(event)
    if (model !== null) this.#name(model)
    try {
      const piece = this.#decoder!.push(Buffer.from(event))
      for (const delta of piece?.deltas ?? []) this.#saidCharacters += charactersOf(delta)
      if (translated && piece && !response.destroyed) translated.piece(piece)
    } catch (cause) {
      this.#failure = cause as Error
    }
    if (translated || response.destroyed || (request.hidesUsage && onlyUsage(event))) return true
    return response.write(event)
  }
}
