import type { Constraint } from '@aworld-train/core'

/** Characters with a meaning in Python's regular expressions. */
const special = /[\\^$.*+?()[\]{}|]/g

/** Converts a constraint to SGLang's sampling parameters (sampling/sampling_params.py of SGLang 0.5): a schema, a pattern or a grammar. */
export function toGrammarParams(constraint: Constraint): object {
  switch (constraint.kind) {
    case 'json-object':
      return { json_schema: '{"type":"object"}' }
    case 'json-schema':
      return { json_schema: constraint.schema }
    case 'regex':
      return { regex: constraint.pattern }
    case 'choice':
      return { regex: `(${constraint.choices.map((text) => text.replace(special, '\\$&')).join('|')})` }
    case 'grammar':
      return { ebnf: constraint.grammar }
  }
}
