import type { Constraint } from '@aworld-train/core'

/**
 * Converts a constraint to `structured_outputs` of vLLM's sampling parameters (sampling_params.py of vLLM 0.32, StructuredOutputsParams).
 */
export function toStructuredOutputs(constraint: Constraint): object {
  switch (constraint.kind) {
    case 'json-object':
      return { json_object: true }
    case 'json-schema':
      return { json: constraint.schema }
    case 'regex':
      return { regex: constraint.pattern }
    case 'choice':
      return { choice: constraint.choices }
    case 'grammar':
      return { grammar: constraint.grammar }
  }
}
