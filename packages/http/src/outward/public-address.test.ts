import { isIP } from 'node:net'
import { expect, it } from 'vitest'
import { privateHosts } from '../testing/private-hosts.ts'
import { isPublicAddress } from './public-address.ts'

/** The host of an address as the URL standard reads it. */
const hostOf = (text: string) => new URL(`http://${text}/`).hostname.replace(/^\[|\]$/g, '')

it.each([...privateHosts, '[64:ff9b:1::1]', '[2001::1]', '[ff02::1]', '[2001:db8::1]', '224.0.0.1', '203.0.113.9'])(
  '%s is not public',
  (text) => {
    const host = hostOf(text)
    expect(isIP(host)).not.toBe(0)
    expect(isPublicAddress(host)).toBe(false)
  },
)

it.each(['93.184.216.34', '8.8.8.8', '2606:2800:220:1:248:1893:25c8:1946'])('%s is public', (address) => {
  expect(isPublicAddress(address)).toBe(true)
})

it.each(['', 'localhost', 'fe80::1%lo', '1.2.3.4.5'])('"%s", which is no address of the public network, is not public', (text) => {
  expect(isPublicAddress(text)).toBe(false)
})
