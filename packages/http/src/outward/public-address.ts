import ipaddr from 'ipaddr.js'

/** The unicast addresses of IPv6 that are in use; outside it stand some which lead to IPv4, such as `::127.0.0.1`. */
const globalUnicast = ipaddr.IPv6.parseCIDR('2000::/3')

/**
 * Whether an IP address belongs to the public network. Loopback, private, link-local, shared and reserved ranges do not, nor do the
 * addresses of IPv6 that lead to one of IPv4 by translation.
 */
export function isPublicAddress(address: string): boolean {
  if (!ipaddr.isValid(address)) return false
  const parsed = ipaddr.process(address)
  return parsed.range() === 'unicast' && (parsed instanceof ipaddr.IPv4 || parsed.match(globalUnicast))
}
