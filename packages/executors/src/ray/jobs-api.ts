import { readFileSync } from 'node:fs'
import { request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { errorMessage, TrainError } from '@aworld-train/core'
import { z } from 'zod'

const Version = z.object({ ray_version: z.string() })
const Submitted = z.object({ submission_id: z.string() })
const Job = z.object({
  status: z.enum(['PENDING', 'RUNNING', 'STOPPED', 'SUCCEEDED', 'FAILED']),
  message: z.string().nullish(),
  driver_exit_code: z.int().nullish(),
})
export type RayJob = z.infer<typeof Job>
const Logs = z.object({ logs: z.string() })

export interface JobSubmission {
  readonly submission_id: string
  readonly entrypoint: string
  readonly runtime_env: { readonly env_vars: Readonly<Record<string, string>> }
}

/** The Jobs API of a cluster of Ray: https://docs.ray.io/en/latest/cluster/running-applications/job-submission/rest.html */
export interface JobsApi {
  /** Version of Ray. Rejects if its jobs may not be read. */
  version(): Promise<string>
  /** Submits a job. Waits up to two minutes for the agent of a head node that has just started. */
  submit(job: JobSubmission, signal: AbortSignal): Promise<void>
  job(id: string): Promise<RayJob>
  logs(id: string): Promise<string>
  stop(id: string): Promise<void>
}

const timeoutMs = 60_000
const agentMs = 120_000
const agentPollMs = 1_000
/** Ray's answer while no node has an agent that could start the job. A head node answers other requests earlier. */
const noAgent = /No available agent to submit job/

/** Reads the token of a cluster where Ray's own tools look for it; `null` if there is none. */
function readToken(): string | null {
  const { RAY_AUTH_TOKEN: token, RAY_AUTH_TOKEN_PATH: path = join(homedir(), '.ray', 'auth_token') } = process.env
  if (token) return token
  try {
    return readFileSync(path, 'utf8').trim() || null
  } catch {
    return null
  }
}

/** Creates a client of the Jobs API at `address`. Its calls reject with CONFIG_INVALID if the address does not answer or refuses them. */
export function createJobsApi(address: string): JobsApi {
  async function call<Value>(method: 'GET' | 'POST', path: string, schema: z.ZodType<Value>, body?: object): Promise<Value> {
    const { status, text } = await send(new URL(path, address), method, body).catch((cause: Error) => {
      const message = `Ray does not answer at ${address} (${cause.message || (cause as NodeJS.ErrnoException).code}); start a cluster with "ray start --head", or correct executor.address, the address of its dashboard.`
      throw new TrainError('CONFIG_INVALID', message, { cause })
    })
    if (status === 401 || status === 403) {
      const message = `Ray at ${address} does not let us in (${status}): it asks for a token, and ${readToken() === null ? 'there is none' : 'takes another'}; set RAY_AUTH_TOKEN, or RAY_AUTH_TOKEN_PATH to the file that "ray start" of the cluster had.`
      throw new TrainError('CONFIG_INVALID', message)
    }
    if (status >= 300)
      throw new TrainError('CONFIG_INVALID', `Ray at ${address} answered ${method} ${path} with ${status}: ${text.slice(0, 500)}`)
    try {
      return schema.parse(JSON.parse(text))
    } catch (cause) {
      const message = `What answers at ${address} is no dashboard of Ray: ${method} ${path} came back as ${text.slice(0, 100)}; correct executor.address.`
      throw new TrainError('CONFIG_INVALID', message, { cause })
    }
  }

  return {
    async version() {
      await call('GET', '/api/jobs/', z.array(z.unknown()))
      return (await call('GET', '/api/version', Version)).ray_version
    },
    async submit(job, signal) {
      for (const deadline = performance.now() + agentMs; ; await sleep(agentPollMs, undefined, { signal })) {
        try {
          return void (await call('POST', '/api/jobs/', Submitted, job))
        } catch (error) {
          if (performance.now() > deadline || !noAgent.test(errorMessage(error))) throw error
        }
      }
    },
    job: (id) => call('GET', `/api/jobs/${id}`, Job),
    logs: async (id) => (await call('GET', `/api/jobs/${id}/logs`, Logs)).logs,
    stop: async (id) => void (await call('POST', `/api/jobs/${id}/stop`, z.unknown())),
  }
}

/** Sends a request without `fetch`, whose `Sec-Fetch-Mode` header makes Ray refuse the request as a browser's. */
function send(url: URL, method: string, body?: object): Promise<{ readonly status: number; readonly text: string }> {
  const token = readToken()
  const headers = {
    ...(body && { 'content-type': 'application/json' }),
    ...(token !== null && { authorization: `Bearer ${token}` }),
  }
  return new Promise((resolve, reject) => {
    const open = url.protocol === 'https:' ? requestHttps : requestHttp
    const request = open(url, { method, headers, signal: AbortSignal.timeout(timeoutMs) }, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (part: string) => {
        text += part
      })
      response.once('error', reject).once('end', () => resolve({ status: response.statusCode ?? 0, text }))
    })
    request.once('error', reject).end(body && JSON.stringify(body))
  })
}
