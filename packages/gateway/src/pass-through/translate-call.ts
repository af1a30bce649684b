import { type ChatAnswerHandler, type TrainError, toTrainError } from '@aworld-train/core'
import type { ActiveCall } from '../active-call.ts'
import type { Completion } from '../call.ts'
import { add } from '../counters.ts'
import {
  type ChatStreamDecoder,
  createChatStreamDecoder,
  decodeChatAnswer,
  encodeChatCall,
  encodeFormat,
} from '../dialects/chat-completions/client/index.ts'
import type { ChatModelRoute } from '../models/model-table.ts'
import { createTextAnswer } from '../relay.ts'
import type { ServedCall } from '../served-call.ts'
import { decode } from '../stages/decode.ts'
import type { Answer } from '../stages/encode.ts'
import { recordedFields } from '../stages/recorded-fields.ts'
import type { EngineCall } from './engine-call.ts'
import { type AnswerSink, isStream, KeptAnswer } from './pass-on.ts'

/** Reads an answer in Chat Completions and writes it in the dialect of the client. */
class TranslatedAnswer extends KeptAnswer implements AnswerSink {
  readonly #answer: Answer
  readonly #active: ActiveCall
  readonly #keepsEntries: boolean
  #decoder: ChatStreamDecoder | null = null
  #failure: TrainError | null = null
  #whole: Completion | null = null

  constructor(answer: Answer, active: ActiveCall, keepsEntries: boolean) {
    super()
    this.#keepsEntries = keepsEntries
    this.#answer = answer
    this.#active = active
  }

  override onHead(head: Parameters<ChatAnswerHandler['onHead']>[0]): void {
    super.onHead(head)
    if (isStream(head.contentType)) this.#decoder = createChatStreamDecoder(this.#keepsEntries)
  }

  onData(chunk: Buffer): boolean {
    if (!this.keep(chunk) || !this.#decoder || this.#failure) return true
    try {
      const piece = this.#decoder.push(chunk)
      if (piece && this.#active.lost() === null) this.#answer.piece(piece)
    } catch (cause) {
      this.#failure = toTrainError(cause, 'POLICY_RESPONSE_INVALID')
    }
    return true
  }

  check(): void {
    if (this.#failure) throw this.#failure
    if (!this.#decoder) {
      this.#whole = decodeChatAnswer(Buffer.concat(this.chunks).toString('utf8')).completion
      return
    }
    const { piece, answer } = this.#decoder.finish()
    if (piece && this.#active.lost() === null) this.#answer.piece(piece)
    this.#whole = answer.completion
  }

  end(): void {
    if (this.#whole) this.#answer.end(this.#whole)
  }
}

/** Turns a call of another dialect into one of Chat Completions, whose answer comes back in the client's own dialect. */
export function translateCall({ options, active, progress }: ServedCall, { engine, name }: ChatModelRoute): EngineCall {
  const { parts, agent, dialect, body } = options
  const call = decode(dialect, body, agent.memory)
  parts.hosted.leaveOut(agent.name, call.hosted)
  for (const ignored of call.ignored) add(parts.counters.ignored, ignored)
  const answer = createTextAnswer(options, name, call, `${agent.arrivals++}`)
  progress.answer = answer
  const format = encodeFormat(call)
  const constrained = format !== undefined || call.toolChoice.kind === 'required' || call.toolChoice.kind === 'named'
  const unread = format === undefined ? call.unusedFields : { ...call.unusedFields, response_format: format }
  const topLogprobs = call.wants.logprobs?.top ?? 0
  const json = encodeChatCall(call, { model: engine.model.name, agentSampling: false })
  return {
    request: Buffer.from(json),
    unusedFields: recordedFields(unread).unusedFields ?? {},
    fields: {
      model: engine.model.name,
      stream: call.stream,
      constrained,
      tools: call.tools.map(({ name }) => name),
      ...(call.maxTokens !== null && { maxTokens: call.maxTokens }),
      ...(topLogprobs > 0 && { topLogprobs }),
    },
    sink: new TranslatedAnswer(answer, active, call.wants.logprobs !== null),
  }
}
