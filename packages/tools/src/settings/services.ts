import type { OutwardOptions, OutwardService, RateLimits } from '@aworld-train/http'

/** A service that tools use, and the variables with its address and key. */
export interface ServiceSetting {
  readonly service: string
  /** Its default address; absent if only the operator knows one. */
  readonly baseUrl?: string | undefined
  readonly baseUrlVariable: string
  readonly key?: ServiceKey | undefined
  /** Parameters of every request, by the variables that hold them. Without them the service is not configured. */
  readonly query?: Readonly<Record<string, string>> | undefined
  /** Limits that its terms set for its own address. Another address that the operator names has no limits. */
  rate?(values: ReadonlyMap<string, string>): RateLimits
}

/** A required key, and how it is sent. */
export interface ServiceKey {
  readonly variable: string
  readonly send: { readonly header: string; readonly scheme: string } | { readonly parameter: string }
}

const minute = 60_000

export const serviceSettings: readonly ServiceSetting[] = [
  {
    service: 'google',
    baseUrl: 'https://www.googleapis.com/customsearch',
    baseUrlVariable: 'GOOGLE_BASE_URL',
    key: { variable: 'GOOGLE_API_KEY', send: { parameter: 'key' } },
    query: { cx: 'GOOGLE_CSE_ID' },
    rate: () => ({ concurrent: 8, span: { requests: 100, ms: minute } }),
  },
  {
    service: 'tavily',
    baseUrl: 'https://api.tavily.com',
    baseUrlVariable: 'TAVILY_BASE_URL',
    key: { variable: 'TAVILY_API_KEY', send: { header: 'authorization', scheme: 'Bearer' } },
    rate: () => ({ concurrent: 8, span: { requests: 100, ms: minute } }),
  },
  { service: 'searxng', baseUrlVariable: 'SEARXNG_BASE_URL' },
  {
    service: 'wikipedia',
    baseUrl: 'https://*.wikipedia.org',
    baseUrlVariable: 'WIKIPEDIA_BASE_URL',
    // Wikimedia allows more requests to clients that name a contact.
    rate: (values) => ({ concurrent: 3, span: { requests: values.has('CONTACT') ? 200 : 10, ms: minute } }),
  },
  {
    service: 'arxiv',
    baseUrl: 'https://export.arxiv.org',
    baseUrlVariable: 'ARXIV_BASE_URL',
    rate: () => ({ concurrent: 1, span: { requests: 1, ms: 3_000 } }),
  },
  {
    service: 'wayback',
    baseUrl: 'https://web.archive.org',
    baseUrlVariable: 'WAYBACK_BASE_URL',
    rate: () => ({ concurrent: 2, span: { requests: 30, ms: minute } }),
  },
]

function toService(setting: ServiceSetting, values: ReadonlyMap<string, string>): OutwardService | null {
  const { service: name, key, query = {}, baseUrlVariable } = setting
  const configuredUrl = values.get(baseUrlVariable)
  const baseUrl = configuredUrl ?? setting.baseUrl
  const secret = key && values.get(key.variable)
  const parameters = Object.entries(query).map(([parameter, variable]) => [parameter, values.get(variable)] as const)
  if (baseUrl === undefined || (key && secret === undefined) || parameters.some(([, value]) => value === undefined)) return null
  const filled = Object.fromEntries(parameters.map(([parameter, value]) => [parameter, value!]))
  const rate = configuredUrl === undefined ? setting.rate?.(values) : undefined
  if (!key || secret === undefined) return { name, baseUrl, query: filled, rate }
  const { send } = key
  return 'header' in send
    ? { name, baseUrl, query: filled, rate, headers: { [send.header]: `${send.scheme} ${secret}` }, secrets: [secret] }
    : { name, baseUrl, query: { ...filled, [send.parameter]: secret }, rate, secrets: [secret] }
}

/** The configured services, and the user agent that every server gets. */
export function outwardSettings(
  values: ReadonlyMap<string, string>,
): Pick<OutwardOptions, 'services'> & { readonly web: { readonly userAgent: string } } {
  const contact = values.get('CONTACT')
  return {
    services: serviceSettings.flatMap((setting) => toService(setting, values) ?? []),
    web: { userAgent: contact === undefined ? 'aworld-train' : `aworld-train (${contact})` },
  }
}
