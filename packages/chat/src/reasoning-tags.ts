/** A family's tags for reasoning in sampled text. */
export interface ReasoningTags {
  readonly name: string
  readonly open: string
  readonly close: string
  /** Text after the opening tag that belongs to it. */
  readonly label?: string
}

/** Tags of DeepSeek, Qwen and others; Magistral; Seed-OSS; Command A; Gemma 4. (gpt-oss has channels instead.) */
export const reasoningTags: readonly ReasoningTags[] = [
  { name: 'think', open: '<think>', close: '</think>' },
  { name: 'bracket-think', open: '[THINK]', close: '[/THINK]' },
  { name: 'seed-think', open: '<seed:think>', close: '</seed:think>' },
  { name: 'command-thinking', open: '<|START_THINKING|>', close: '<|END_THINKING|>' },
  { name: 'gemma-thought', open: '<|channel>', close: '<channel|>', label: 'thought\n' },
]

/** The tags that a template contains, if any. Tags of other models are ordinary text. */
export function reasoningTagsOf(templateSource: string): ReasoningTags | null {
  return reasoningTags.find(({ open, close }) => templateSource.includes(open) || templateSource.includes(close)) ?? null
}

/** Whether the text of a prompt ends inside a reasoning block. */
export function endsInReasoning(prompt: string, tags: ReasoningTags | null): boolean {
  return tags !== null && prompt.trimEnd().endsWith((tags.open + (tags.label ?? '')).trimEnd())
}
