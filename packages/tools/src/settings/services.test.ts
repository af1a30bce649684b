import { expect, it } from 'vitest'
import { settingKeys } from './keys.ts'
import { outwardSettings, serviceSettings } from './services.ts'

const services = (values: Record<string, string>) => outwardSettings(new Map(Object.entries(values))).services
const find = (name: string, values: Record<string, string> = {}) => services(values).find((service) => service.name === name)

it('offers without any key what needs none', () => {
  expect(services({}).map(({ name }) => name)).toEqual(['wikipedia', 'arxiv', 'wayback'])
})

it('sends each key as its service takes it, and counts it among the secrets', () => {
  const values = { TAVILY_API_KEY: 'tvly-1', GOOGLE_API_KEY: 'AIza', GOOGLE_CSE_ID: 'engine', SEARXNG_BASE_URL: 'http://localhost:8888' }
  expect(find('tavily', values)).toMatchObject({ headers: { authorization: 'Bearer tvly-1' }, secrets: ['tvly-1'] })
  expect(find('google', values)).toMatchObject({ query: { cx: 'engine', key: 'AIza' }, secrets: ['AIza'] })
  expect(find('searxng', values)).toMatchObject({ baseUrl: 'http://localhost:8888' })
})

it('leaves out a service of which a part is missing', () => {
  expect(find('google', { GOOGLE_API_KEY: 'AIza' })).toBeUndefined()
})

it('keeps to the terms of a service at its own address, more loosely where the operator can be written to', () => {
  expect(find('wikipedia')!.rate!.span!.requests).toBe(10)
  expect(find('wikipedia', { CONTACT: 'me@example.com' })!.rate!.span!.requests).toBe(200)
  expect(outwardSettings(new Map([['CONTACT', 'me@example.com']])).web.userAgent).toBe('aworld-train (me@example.com)')
  expect(find('wikipedia', { WIKIPEDIA_BASE_URL: 'http://127.0.0.1:1/*' })!.rate).toBeUndefined()
})

it('takes its variables from the keys of the environment', () => {
  const names = new Set(settingKeys.map(({ name }) => name))
  const used = serviceSettings.flatMap(({ baseUrlVariable, key, query = {} }) => [baseUrlVariable, key?.variable, ...Object.values(query)])
  expect(used.filter((name) => name !== undefined && !names.has(name))).toEqual([])
})
