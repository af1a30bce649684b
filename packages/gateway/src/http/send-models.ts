import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Dialect, ListedModel } from '../call.ts'
import type { Model, ModelTable } from '../models/model-table.ts'
import { sendText } from '../stages/encode.ts'

const toListed = (model: Model): ListedModel => ({
  id: model.name,
  contextLength: model.kind === 'frozen' ? null : model.engine.model.contextLength,
})

/** Reads a name in a path, which may be percent-encoded. A badly encoded name is read as it stands. */
export function decodeName(name: string): string {
  try {
    return decodeURIComponent(name)
  } catch {
    return name
  }
}

/** Answers `/models` and `/models/{id}`. Slashes in the id need no encoding. Throws GATEWAY_MODEL_UNKNOWN. */
export function sendModels(
  models: ModelTable,
  dialect: Dialect,
  path: string,
  { url = '' }: IncomingMessage,
  response: ServerResponse,
): void {
  const id = decodeName(path.slice('/models/'.length))
  const query = new URLSearchParams(url.split('?')[1])
  const json = id === '' ? dialect.encodeModels(models.all.map(toListed), query) : dialect.encodeModel(toListed(models.listed(id)))
  sendText(response, 200, 'application/json', json, { 'cache-control': 'no-store' })
}
