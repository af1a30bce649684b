import ipaddr from 'ipaddr.js'

/** The unicast addresses of IPv6 in use. Outside this range are some that lead to IPv4, such as `::127.0.0.1`. */
const globalUnicast = ipaddr.IPv6.parseCIDR('2000::/3')

/**
 * Whether an IP address belongs to the public network. Loopback, private, link-local, shared and reserved ranges do not. Neither do IPv6
 * addresses that translate to IPv4.
 */
export function isPublicAddress(address: string): boolean {
  if (!ipaddr.isValid(address)) return false
  const parsed = ipaddr.process(address)
  return parsed.range() === 'unicast' && (parsed instanceof ipaddr.IPv4 || parsed.match(globalUnicast))
}
