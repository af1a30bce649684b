import type { ListedModel } from '../../call.ts'
import { badRequest } from '../../failure.ts'

const toModel = ({ id, contextLength }: ListedModel) => ({
  type: 'model',
  id,
  display_name: id,
  // The API itself uses this date when it does not know the right one.
  created_at: '1970-01-01T00:00:00Z',
  capabilities: null,
  deprecated_at: null,
  lifecycle: 'active',
  line: null,
  max_input_tokens: contextLength,
  max_tokens: contextLength,
})

function readLimit(text: string | null): number {
  const limit = text === null ? 20 : Number(text)
  if (Number.isInteger(limit) && limit >= 1 && limit <= 1000) return limit
  throw badRequest(`"limit" is "${text}"; it must be a whole number from 1 to 1000.`, 'limit')
}

function indexOf(models: readonly ListedModel[], id: string, param: string): number {
  const index = models.findIndex((model) => model.id === id)
  if (index < 0) throw badRequest(`"${param}" is "${id}", which is no model here; leave it out for the first page.`, param)
  return index
}

export const encodeModel = (model: ListedModel): string => JSON.stringify(toModel(model))

/** One page: https://docs.anthropic.com/en/api/models-list */
export function encodeModels(models: readonly ListedModel[], query: URLSearchParams): string {
  const limit = readLimit(query.get('limit'))
  const [after, before] = [query.get('after_id'), query.get('before_id')]
  const start = after === null ? 0 : indexOf(models, after, 'after_id') + 1
  const end = before === null ? models.length : indexOf(models, before, 'before_id')
  // A page backwards is the one before `before_id`.
  const page = before === null ? models.slice(start, start + limit) : models.slice(Math.max(start, end - limit), end)
  const more = before === null ? start + limit < models.length : end - limit > start
  return JSON.stringify({ data: page.map(toModel), has_more: more, first_id: page[0]?.id ?? null, last_id: page.at(-1)?.id ?? null })
}
