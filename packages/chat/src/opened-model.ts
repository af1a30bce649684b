import type { ReasoningTags } from './reasoning-tags.ts'
import type { ModelTemplates } from './render/chat-renderer.ts'
import type { TextTokenizer } from './tokenizer.ts'
import type { TemplateProbe } from './types.ts'

/** A folder that was read and probed, before the decision whether it can be used. */
export interface OpenedModel {
  readonly directory: string
  readonly tokenizer: TextTokenizer
  readonly templates: ModelTemplates
  readonly probe: TemplateProbe
  readonly reasoning: ReasoningTags | null
  /** Texts of all tokens that end a turn, by id. */
  readonly stops: ReadonlyMap<number, string>
  /** The ids among them at which the engine ends a completion. */
  readonly engineStopIds: ReadonlySet<number>
}
