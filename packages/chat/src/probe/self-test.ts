import { errorMessage } from '@aworld-train/core'
import type { OpenedModel } from '../opened-model.ts'
import { createChatRenderer } from '../render/chat-renderer.ts'
import { user, words } from './probe-conversations.ts'

const sampleTexts = ['\n', ' \n', 'Hello, world', words.user, 'ünïcödé 漢字 🙂', '{"name": "x", "arguments": {}}']

/** Reasons, as sentences, why a model cannot be used with exact tokens; none if it can. */
export function selfTest(model: OpenedModel): string[] {
  const { directory, tokenizer, probe, stops, engineStopIds } = model
  const problems = renderingProblems(model)
  for (const [id, text] of stops) {
    if (tokenizer.encode(`${text}x`)[0] !== id || tokenizer.encode(`${text}\n`)[0] !== id) {
      problems.push(`The tokenizer of ${directory} does not read the stop token ${text} back as id ${id}; make it an added token.`)
    }
  }
  for (const text of sampleTexts) {
    const back = tokenizer.decode(tokenizer.encode(`x${text}`), false).slice(1)
    if (back !== text) {
      problems.push(`The tokenizer of ${directory} turns ${JSON.stringify(text)} into ${JSON.stringify(back)}; use one that loses nothing.`)
      break
    }
  }
  const closing = new Set(Object.values(probe.stops).filter((text) => text !== null))
  const stopTexts = new Set([...engineStopIds].map((id) => stops.get(id)))
  const { finalStop } = probe
  for (const text of closing) {
    const ends = text === probe.stops.plain && finalStop !== null ? finalStop : text
    if (stopTexts.has(text) || stopTexts.has(ends)) continue
    problems.push(
      `The template of ${directory} closes a turn with ${ends}, where the engine does not stop; add ${ends} to its stop tokens.`,
    )
  }
  return problems
}

function renderingProblems({ directory, templates, probe, reasoning }: OpenedModel): string[] {
  const renderer = createChatRenderer(templates, { ...probe, reasoningTags: reasoning })
  const input = { messages: [user(words.user)], tools: renderer.toolSet([]), addGenerationPrompt: true, now: new Date(0) }
  try {
    if (renderer.render(input).includes(words.user)) return []
    return [`The chat template of ${directory} prints no user message; check that it belongs to this model.`]
  } catch (error) {
    const reason = errorMessage(error)
    return [`The chat template of ${directory} cannot be used: ${reason}. Use a chat engine, which renders on its own side.`]
  }
}
