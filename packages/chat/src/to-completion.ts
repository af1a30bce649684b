import { TrainError } from '@aworld-train/core'
import { turnKind } from './continuity/marks.ts'
import { firstStop } from './continuity/stop-texts.ts'
import type { OpenedModel } from './opened-model.ts'
import { createChatRenderer } from './render/chat-renderer.ts'
import type { ChatModel } from './types.ts'

/**
 * Creates `toCompletion` of a model: the text of the last message after the prompt, and its ids after the last stop token of the prompt.
 */
export function createToCompletion({
  tokenizer,
  templates,
  probe,
  reasoning,
  stops,
  engineStopIds,
}: OpenedModel): ChatModel['toCompletion'] {
  const renderer = createChatRenderer(templates, { ...probe, reasoningTags: reasoning })
  const ends = new Map([...stops].filter(([id]) => engineStopIds.has(id)))
  return ({ messages, tools: definitions }) => {
    const tools = renderer.toolSet(definitions)
    const now = new Date(0)
    const prompt = renderer.render({ messages: messages.slice(0, -1), tools, addGenerationPrompt: true, now })
    const whole = renderer.render({ messages, tools, addGenerationPrompt: false, now })
    if (!whole.startsWith(prompt)) throw unsupported('writes an assistant message otherwise than its generation prompt begins it')
    const stop = firstStop(whole, ends, prompt.length)
    // If the next header closes a turn, a last message has no stop after it yet.
    const text = stop ? whole.slice(prompt.length, stop.end) : whole.slice(prompt.length) + (probe.stops[turnKind(messages.at(-1)!)] ?? '')
    const context = prompt.slice(Math.max(0, ...[...stops.values()].map((each) => prompt.lastIndexOf(each))))
    const before = tokenizer.encode(context)
    const together = tokenizer.encode(context + text)
    // Some tokenizers merge text across the end of the prompt. The text is then encoded alone, because the policy continues from whole ids.
    const goesOn = before.every((id, position) => together[position] === id)
    const completion = goesOn ? together.slice(before.length) : tokenizer.encode(text).slice()
    if (!ends.has(completion.at(-1) ?? -1)) throw unsupported('closes an assistant message with no token at which the engine stops')
    return completion
  }
}

const unsupported = (what: string) =>
  new TrainError('TEMPLATE_UNSUPPORTED', `The chat template ${what}; no demonstration can be made for it. Use another template.`)
