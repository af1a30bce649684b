import type { OutwardService } from '@aworld-train/http'
import { modelRoles } from '../tool-server.ts'
import { modelService, modelSettings } from './models.ts'

/** The models that tools ask, as services with their keys. */
export function modelServices(values: ReadonlyMap<string, string>): OutwardService[] {
  return modelRoles.flatMap((role): OutwardService[] => {
    const model = modelSettings(values, role)
    if (!model) return []
    const { baseUrl, apiKey } = model
    return [
      {
        name: modelService(role),
        baseUrl,
        ...(apiKey !== undefined && { headers: { authorization: `Bearer ${apiKey}` }, secrets: [apiKey] }),
      },
    ]
  })
}
