import { isRecord } from '@aworld-train/core'

/** The members of the object that `json` holds; none where it holds no object. */
export function parseObject(json: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(json)
    return isRecord(value) ? value : {}
  } catch {
    return {}
  }
}
