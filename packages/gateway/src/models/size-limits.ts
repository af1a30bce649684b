import type { Model, ModelTable } from './model-table.ts'
import type { TokenRoute } from './routes.ts'

/**
 * Most bytes of a prompt for each token of context. English has about four bytes a token and hardly any text sixteen, so
 * a longer prompt would not fit.
 */
const promptBytesPerToken = 16
/** Bytes of a body for each byte of its prompt. JSON writes a byte of text in up to six, and adds names. */
const bodyBytesPerPromptByte = 8
const smallestBodyLimit = 1024 * 1024
/** Limit for models that render prompts themselves and get the bytes as they are. */
const passedBodyLimit = 64 * 1024 * 1024

/** Largest rendered prompt in bytes of UTF-8. */
export function maxPromptBytes({ engine, maxPromptBytes }: Pick<TokenRoute, 'engine' | 'maxPromptBytes'>): number {
  return maxPromptBytes ?? promptBytesPerToken * engine.model.contextLength
}

/** Largest request body for a model, unless the gateway's options name a limit. */
export function maxBodyBytes(model: Model): number {
  return model.kind === 'token' ? Math.max(smallestBodyLimit, bodyBytesPerPromptByte * maxPromptBytes(model)) : passedBodyLimit
}

/** Like `maxBodyBytes`, for a request whose model is not known yet. */
export const largestBodyBytes = ({ all }: ModelTable): number => Math.max(...all.map(maxBodyBytes))
