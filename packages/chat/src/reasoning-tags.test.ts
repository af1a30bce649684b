import { describe, expect, test } from 'vitest'
import { createCallReader } from './call-reader.ts'
import { CompletionOutput } from './completion-output.ts'
import { createReasoningReader } from './reasoning-reader.ts'
import { endsInReasoning, reasoningTags, reasoningTagsOf } from './reasoning-tags.ts'
import { toolCallSyntaxes } from './syntax/table.ts'

describe.each(reasoningTags.map((tags) => [tags.name, tags] as const))('%s', (_, tags) => {
  const label = tags.label ?? ''

  test('a template that speaks of it is known by it, and so is a prompt that leaves it open', () => {
    expect(reasoningTagsOf(`{{ '${tags.open}${label}' }}{{ '${tags.close}' }}`)).toBe(tags)
    expect(endsInReasoning(`assistant\n${tags.open}${label}\n`, tags)).toBe(true)
    expect(endsInReasoning(`assistant\n${tags.open}${label}\n${tags.close}`, tags)).toBe(false)
  })

  test.each([true, false])('is split off in any pieces, as tokens: %s', (special) => {
    const isSpecial = () => special
    const pieces = special
      ? [tags.open, `${label}Let me see.\n`, tags.close, '\n\nIt is 26.']
      : [...`${tags.open}${label}Let me see.\n${tags.close}\n\nIt is 26.`]
    const output = new CompletionOutput({ parallelCalls: true, mintToolCallId: String, idForm: 'any' })
    const next = createCallReader({ output, syntax: toolCallSyntaxes.at(-1)!, tools: [], isSpecial })
    const reader = createReasoningReader({ output, tags, isOpen: false, callMarkers: [], isSpecial, next })
    for (const text of pieces) reader.read({ text, special: special && (text === tags.open || text === tags.close), stop: false })
    reader.finish(true)
    expect(output.message).toEqual({ role: 'assistant', content: 'It is 26.', reasoning: 'Let me see.' })
  })
})

test('tags of other models are text', () => {
  expect(reasoningTagsOf('{{ messages[0].content }}')).toBeNull()
})
