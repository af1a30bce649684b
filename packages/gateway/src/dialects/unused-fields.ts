import type { RequestedSampling } from '../call.ts'
import { memberTexts } from './member-text.ts'
import type { Fields } from './read-fields.ts'

/** Fields that are counted by name if they have no effect. All others are counted together. */
const countedByName: ReadonlySet<string> = new Set([
  'temperature',
  'top_p',
  'top_k',
  'min_p',
  'seed',
  'presence_penalty',
  'frequency_penalty',
  'repetition_penalty',
  'logit_bias',
  'response_format',
  'text',
  'reasoning',
  'reasoning_effort',
  'thinking',
  'truncation',
  'output_config',
])

/** Copies a substring, so that it does not keep the whole text in memory. */
const detach = (text: string) => Buffer.from(text).toString()

/** Finds the fields of a request that have no effect here: the names to count, and every field as it was written. */
export function unusedFields(body: Fields, json: string, used: ReadonlySet<string>) {
  const ignored: string[] = []
  const fields: Record<string, string> = {}
  let written: ReadonlyMap<string, string> | undefined
  for (const name in body) {
    const value = body[name]
    if (used.has(name) || value === null) continue
    ignored.push(countedByName.has(name) ? name : 'other')
    if (typeof value === 'object') written ??= memberTexts(json)
    const text = typeof value === 'object' ? detach(written?.get(name) ?? 'null') : JSON.stringify(value)
    // A request may have a field `__proto__`, which must not set the prototype.
    Object.defineProperty(fields, name, { value: text, enumerable: true })
  }
  return { ignored, unusedFields: fields }
}

/** The sampling that a request asks for, in names that the dialects share. */
export function requestedSampling({ temperature, top_p: topP, top_k: topK, seed }: Fields): RequestedSampling {
  return {
    ...(typeof temperature === 'number' && { temperature }),
    ...(typeof topP === 'number' && { topP }),
    ...(Number.isSafeInteger(topK) && { topK: topK as number }),
    ...(Number.isSafeInteger(seed) && { seed: seed as number }),
  }
}
