import { isIP } from 'node:net'
import { expect, it } from 'vitest'
import { isPublicAddress } from './public-address.ts'

/** The host of an address as the URL standard reads it. */
const hostOf = (text: string) => new URL(`http://${text}/`).hostname.replace(/^\[|\]$/g, '')

it.each([
  ...[
    '127.0.0.1',
    '127.1',
    '127.0.1',
    '0',
    '0.0.0.0',
    '2130706433',
    '0x7f000001',
    '0x7f.1',
    '017700000001',
    '0177.0.0.1',
    '127.127.127.127',
  ],
  ...[
    '[::1]',
    '[::]',
    '[0:0:0:0:0:0:0:1]',
    '[::ffff:127.0.0.1]',
    '[::ffff:7f00:1]',
    '[::127.0.0.1]',
    '[64:ff9b::7f00:1]',
    '[2002:7f00:1::]',
  ],
  ...['10.0.0.5', '172.16.0.1', '192.168.1.1', '169.254.169.254', '0xa9fea9fe', '2852039166', '[::ffff:169.254.169.254]', '[fd00::1]'],
  ...[
    '[fc00::5]',
    '[fe80::1]',
    '100.64.0.1',
    '100.100.100.200',
    '198.18.0.1',
    '192.0.0.192',
    '192.0.2.1',
    '198.51.100.1',
    '255.255.255.255',
  ],
  ...['①②⑦.⓪.⓪.①', '127。0。0。1', '127.0.0.1.', '[64:ff9b:1::1]', '[2001::1]', '[ff02::1]', '[2001:db8::1]', '224.0.0.1', '203.0.113.9'],
])('%s is not public', (text) => {
  const host = hostOf(text)
  expect(isIP(host)).not.toBe(0)
  expect(isPublicAddress(host)).toBe(false)
})

it.each(['93.184.216.34', '8.8.8.8', '2606:2800:220:1:248:1893:25c8:1946'])('%s is public', (address) => {
  expect(isPublicAddress(address)).toBe(true)
})

it.each(['', 'localhost', 'fe80::1%lo', '1.2.3.4.5'])('"%s", which is no address of the public network, is not public', (text) => {
  expect(isPublicAddress(text)).toBe(false)
})
