import type { ListedModel } from '../call.ts'

/** A model as OpenAI's API lists it, with vLLM's field for its context. */
const toModel = ({ id, contextLength }: ListedModel) => ({
  id,
  object: 'model',
  created: 0,
  owned_by: 'aworld-train',
  ...(contextLength !== null && { max_model_len: contextLength }),
})

/** Lists models in the form of both of OpenAI's dialects: https://platform.openai.com/docs/api-reference/models */
export const openaiModels = {
  encodeModel: (model: ListedModel) => JSON.stringify(toModel(model)),
  encodeModels: (models: readonly ListedModel[]) => JSON.stringify({ object: 'list', data: models.map(toModel) }),
}
