import { openOutward } from '@aworld-train/http'
import { modelServices } from '../settings/model-services.ts'
import { modelSettings, openToolModel } from '../settings/models.ts'
import type { ModelRole, ServerToolContext } from '../tool-server.ts'
import { openStandIn, type StandInAnswer, type StandInRequest } from './stand-in.ts'
import { openTestSandbox } from './tier.ts'
import { openToolContext, type TestToolContext } from './tool-context.ts'

/** The context of a tool that asks the model of a role. The model's server answers as `answer` does, and each request is kept. */
export async function openServiceContext(
  role: ModelRole,
  answer: (request: StandInRequest) => StandInAnswer | null,
  overrides: Partial<ServerToolContext> = {},
  openSandbox = openTestSandbox,
): Promise<TestToolContext & { readonly requests: readonly StandInRequest[] }> {
  const server = await openStandIn(answer)
  const prefix = `${role.toUpperCase()}_LLM`
  const values = new Map([
    [`${prefix}_BASE_URL`, `${server.url}/v1`],
    [`${prefix}_MODEL_NAME`, 'a-model'],
  ])
  const outward = await openOutward({ services: modelServices(values) })
  const model: ServerToolContext['model'] = (wanted) => openToolModel(wanted, modelSettings(values, wanted), outward, context.signal)
  const context = await openToolContext({ outward, model, ...overrides }, openSandbox)
  return {
    ...context,
    requests: server.requests,
    async close() {
      await outward.close()
      await server.close()
      await context.close()
    },
  }
}

/** The same for a model that chats: `answer` gets the body of each request, which is kept. */
export async function openModelContext(
  role: ModelRole,
  answer: (body: ChatRequest) => StandInAnswer | null,
  overrides: Partial<ServerToolContext> = {},
  openSandbox = openTestSandbox,
): Promise<TestToolContext & { readonly requests: readonly ChatRequest[] }> {
  const requests: ChatRequest[] = []
  const keep = ({ body }: StandInRequest) => {
    const request = JSON.parse(body) as ChatRequest
    requests.push(request)
    return answer(request)
  }
  return { ...(await openServiceContext(role, keep, overrides, openSandbox)), requests }
}

export interface ChatRequest {
  readonly messages: readonly { readonly role: string; readonly content: string }[]
  readonly temperature: number
}
