import { isRecord, type PolicyEndpoint, type ScoringContext, TrainError } from '@aworld-train/core'

/** The judge of a reward. */
export interface JudgeOptions {
  /** Name of a frozen model in `models` of the configuration. */
  readonly judge: string
  /** Further fields of the judge's request, such as `{ temperature: 0 }` or a `response_format`. */
  readonly request?: Readonly<Record<string, unknown>> | undefined
}

/** Why an answer of a judge is none: details of JUDGE_INVALID. */
type JudgeFault = 'no-json' | 'missing' | 'no-number' | 'out-of-range'

/** A JUDGE_INVALID that names the judge, the fault and what it answered. */
function judgeFault(judge: string, fault: JudgeFault, what: string): TrainError {
  return new TrainError('JUDGE_INVALID', `Judge "${judge}" ${what}.`, { details: { judge, fault } })
}

/**
 * Asks the judge, and resolves to the object of its answer, which is JSON alone. The material is one JSON value, in which a text cannot end
 * its own place: whatever a candidate writes stays a string. Rejects with JUDGE_INVALID and REWARD_FAILED.
 */
export async function askJudge(
  { judge, request = {} }: JudgeOptions,
  { model, signal }: ScoringContext,
  { instructions, material }: { readonly instructions: string; readonly material: unknown },
): Promise<Readonly<Record<string, unknown>>> {
  const endpoint = model(judge)
  const text = await complete(endpoint, signal, {
    ...request,
    messages: [
      { role: 'system', content: instructions },
      { role: 'user', content: JSON.stringify(material, null, 1) },
    ],
  })
  const json = /^\s*```(?:json)?\s*\n([\s\S]*?)\n\s*```\s*$/.exec(text)?.[1] ?? text
  try {
    // Some judges write numbers as JavaScript and Python know them; they are no JSON, and no scores.
    const value: unknown = JSON.parse(json.replaceAll(/([:[,]\s*)-?(?:NaN|Infinity)\b/g, '$1null'))
    if (isRecord(value)) return value
  } catch {}
  throw judgeFault(judge, 'no-json', `answered with no JSON object: ${shorten(text)}`)
}

async function complete({ baseUrl, apiKey, model }: PolicyEndpoint, signal: AbortSignal, body: object): Promise<string> {
  const response = await fetch(`${baseUrl}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ ...body, model }),
    signal,
  })
  if (!response.ok) throw new TrainError('REWARD_FAILED', `The judge answered ${response.status}: ${shorten(await response.text())}`)
  const { choices } = (await response.json()) as { readonly choices: readonly { readonly message: { readonly content: string | null } }[] }
  return choices[0]?.message.content ?? ''
}

/** The number from 0 to `most` that a judge gave `what`, which has the name `key`. Throws JUDGE_INVALID for any other value. */
export function judgedNumber(
  scores: unknown,
  { judge, key, what, most }: { readonly judge: string; readonly key: string; readonly what: string; readonly most: number },
): number {
  if (!isRecord(scores) || !Object.hasOwn(scores, key))
    throw judgeFault(judge, 'missing', `left out ${what} "${key}": ${shorten(JSON.stringify(scores ?? null))}`)
  const value = scores[key]
  if (typeof value !== 'number' || !Number.isFinite(value))
    throw judgeFault(judge, 'no-number', `gave ${what} "${key}" no number: ${shorten(JSON.stringify(scores))}`)
  if (value < 0 || value > most) throw judgeFault(judge, 'out-of-range', `gave ${what} "${key}" ${value}, which is not from 0 to ${most}`)
  return value
}

const shorten = (text: string) => {
  const line = JSON.stringify(text)
  return line.length > 120 ? `${line.slice(0, 120)}…` : line
}
