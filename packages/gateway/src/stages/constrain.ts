import type { Constraint } from '@aworld-train/core'
import type { ModelCall } from '../call.ts'
import { badRequest } from '../failure.ts'
import type { TokenModel } from '../models/model-table.ts'

const unsupported = 'constraint_unsupported'

/**
 * The form that the engine must enforce on a completion; `undefined` if the request asks for none, or makes the completion begin inside a
 * call. Throws GATEWAY_BAD_REQUEST for a form that nothing would enforce.
 */
export function constrain(
  { constraint, tools, toolChoice }: Pick<ModelCall, 'constraint' | 'tools' | 'toolChoice'>,
  { name, engine }: Pick<TokenModel, 'name' | 'engine'>,
): Constraint | undefined {
  if (!constraint || toolChoice.kind === 'required' || toolChoice.kind === 'named') return undefined
  const { form, param } = constraint
  if (!engine.constraints?.has(form.kind)) {
    const message = `"${param}" asks for a form of the answer (${form.kind}), and the engine of model "${name}" cannot enforce it. Leave it out and ask for the form in words, or serve the model by an engine that can.`
    throw badRequest(message, param, 400, unsupported)
  }
  if (tools.length > 0 && toolChoice.kind === 'auto') {
    const message = `"${param}" asks for a form of the answer (${form.kind}), in which no tool can be called. Send tool_choice none with it, or leave it out while tools may be called.`
    throw badRequest(message, param, 400, unsupported)
  }
  return form
}
