import { createEventReader, type FinishReason, type ReportedCompletion, type WeightVersionSpan } from '@aworld-train/core'
import { invalidAnswer, parseAnswer, toStreamError } from '../http/server-error.ts'
import { toFinishReason } from './finish-reason.ts'
import { createMessage, type WireMessage } from './join-message.ts'

export interface WireChoice {
  readonly index?: number
  readonly message?: WireMessage
  readonly delta?: WireMessage
  readonly finish_reason?: string | null
  readonly logprobs?: { readonly content?: readonly { readonly logprob: number }[] | null } | null
}

export interface WireAnswer {
  readonly choices?: readonly WireChoice[]
  readonly error?: unknown
  readonly usage?: {
    readonly prompt_tokens?: number
    readonly completion_tokens?: number
    readonly prompt_tokens_details?: { readonly cached_tokens?: number } | null
  } | null
}

/** Tokens that one answer, or one event of it, reports. Absent members are not reported there. */
export interface ReportedTokens {
  readonly promptTokenIds?: readonly number[] | null | undefined
  readonly tokenIds?: readonly number[] | null | undefined
  readonly logprobs?: readonly number[] | null | undefined
  readonly weightVersions?: readonly WeightVersionSpan[] | undefined
}

/** Reads token ids and logprobs from their place in a server's Chat Completions answers. */
export type ReadTokens = (answer: WireAnswer, choice: WireChoice | undefined) => ReportedTokens

export interface ReadChatAnswerOptions {
  readonly server: string
  readonly body: Uint8Array
  readonly stream: boolean
  readonly readTokens: ReadTokens
  /** Reason why the answer may be cut off; `null` if it may not be. */
  readonly broken?: FinishReason | null | undefined
}

/**
 * The completion in the whole bytes of a Chat Completions answer, JSON or server-sent events. Throws POLICY_RESPONSE_INVALID if ids or
 * logprobs are missing or of unequal length, if there is no choice or more than one, or if the answer is cut off. A stream that is `broken`
 * may be cut off after at least one token.
 */
export function readChatAnswer({ server, body, stream, readTokens, broken: why = null }: ReadChatAnswerOptions): ReportedCompletion {
  const broken = stream ? why : null
  const message = createMessage()
  const tokenIds: number[] = []
  const logprobs: number[] = []
  let promptTokenIds: readonly number[] | null = null
  let weightVersions: readonly WeightVersionSpan[] | undefined
  let finish: string | null = null
  let usage: WireAnswer['usage'] = null
  let done = !stream
  let choices = 0

  const add = (answer: WireAnswer): void => {
    if (answer.error) {
      if (broken) return
      throw toStreamError(server, answer.error)
    }
    usage = answer.usage ?? usage
    const choice = answer.choices?.[0]
    if ((answer.choices?.length ?? 0) > 1 || (choice?.index ?? 0) > 0)
      throw invalidAnswer(server, 'answered several choices where one is recorded')
    if (choice) choices++
    const reported = readTokens(answer, choice)
    promptTokenIds = samePrompt(server, promptTokenIds, reported.promptTokenIds ?? null)
    weightVersions = reported.weightVersions ?? weightVersions
    checkPairs(server, reported)
    for (const id of reported.tokenIds ?? []) tokenIds.push(id)
    for (const logprob of reported.logprobs ?? []) logprobs.push(logprob)
    if (!choice) return
    message.add(choice.message ?? choice.delta ?? {})
    finish = choice.finish_reason ?? finish
  }

  if (stream) {
    const reader = createEventReader()
    // The last line of a broken answer may have been cut anywhere, even within a character.
    const lines = broken ? body.subarray(0, body.lastIndexOf(0x0a) + 1) : body
    for (const { data } of [...reader.push(lines), ...reader.finish()]) {
      if (data === '[DONE]') done = true
      else add(parseAnswer(server, data))
    }
  } else add(parseAnswer(server, Buffer.from(body).toString('utf8')))

  if (choices === 0) throw invalidAnswer(server, 'answered no choice')
  if (broken && tokenIds.length === 0) throw invalidAnswer(server, 'ended before its first token')
  if (!broken && (!done || finish === null)) throw invalidAnswer(server, 'ended in the middle of its answer')
  if (promptTokenIds === null || (tokenIds.length === 0 && logprobs.length > 0)) throw invalidAnswer(server, 'answered without token ids')
  if (tokenIds.length !== logprobs.length)
    throw invalidAnswer(server, `answered ${tokenIds.length} token ids with ${logprobs.length} logprobs`)
  checkTokens(server, tokenIds, logprobs)
  const prompt = Int32Array.from(promptTokenIds as readonly number[])
  const counted = (usage ?? {}) as NonNullable<WireAnswer['usage']>
  return {
    promptTokenIds: prompt,
    completionTokenIds: Int32Array.from(tokenIds),
    rolloutLogprobs: Float32Array.from(logprobs),
    message: message.finish(),
    finishReason: finish === null ? broken! : toFinishReason(finish),
    usage: {
      promptTokens: counted.prompt_tokens ?? prompt.length,
      completionTokens: counted.completion_tokens ?? tokenIds.length,
      cachedTokens: counted.prompt_tokens_details?.cached_tokens ?? 0,
    },
    ...(weightVersions !== undefined && { weightVersions }),
  }
}

/** Checks the ids of a prompt, which a server may repeat in every event. Throws POLICY_RESPONSE_INVALID if they change. */
function samePrompt(server: string, before: readonly number[] | null, ids: readonly number[] | null): readonly number[] | null {
  if (before === null || ids === null) return before ?? ids
  if (before.length === ids.length && before.every((id, index) => id === ids[index])) return before
  throw invalidAnswer(server, 'answered two lists of prompt ids that differ')
}

/** Throws POLICY_RESPONSE_INVALID for an event with different numbers of ids and logprobs, even if those of the whole answer are equal. */
function checkPairs(server: string, { tokenIds, logprobs }: ReportedTokens): void {
  if (!tokenIds || !logprobs || tokenIds.length === logprobs.length) return
  throw invalidAnswer(server, `answered ${tokenIds.length} token ids with ${logprobs.length} logprobs`)
}

/** Throws POLICY_RESPONSE_INVALID for an invalid id, and for a logprob that is not a number of at most 0. */
export function checkTokens(server: string, tokenIds: ArrayLike<number>, logprobs: ArrayLike<number>): void {
  for (let index = 0; index < tokenIds.length; index++) {
    const id = tokenIds[index]!
    const logprob = logprobs[index]!
    if (!(Number.isInteger(id) && id >= 0)) throw invalidAnswer(server, `answered ${JSON.stringify(id)} as a token id`)
    if (!(Number.isFinite(logprob) && logprob <= 0))
      throw invalidAnswer(server, `answered ${JSON.stringify(logprob)} as the logprob of token ${id}`)
  }
}
