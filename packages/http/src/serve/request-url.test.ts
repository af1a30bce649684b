import { expect, it } from 'vitest'
import { requestUrl } from './request-url.ts'

it.each([
  [undefined, '/'],
  ['/v1/leases?a=b', '/v1/leases'],
  ['//', '//'],
  ['//other/v1', '//other/v1'],
  ['/a/../b', '/b'],
  ['http://host/v1', '/v1'],
  ['http://[', '/'],
  ['*', '/'],
])('%j is the path %s', (url, path) => {
  expect(requestUrl({ url }).pathname).toBe(path)
})
