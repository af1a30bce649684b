import { type LookupAddress, type LookupAllOptions, lookup as systemLookup } from 'node:dns'
import { isIP, type LookupFunction } from 'node:net'
import { buildConnector } from 'undici'
import { isPublicAddress } from './public-address.ts'

/** The error for a host that is, or has, an address outside the public network. */
export class AddressRefused extends Error {
  override readonly name = 'AddressRefused'
}

/** Finds all addresses of a name, as `dns.lookup` does. */
export type LookupAll = (
  host: string,
  options: LookupAllOptions,
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void

/** Wraps a lookup so that it refuses a name if any of its addresses is not public. The order of the addresses then does not matter. */
function guardLookup(lookup: LookupAll): LookupFunction {
  return (host, options, callback) =>
    lookup(host, { ...options, all: true }, (error, addresses) => {
      if (error) return callback(error, [])
      const [first] = addresses
      const refused = addresses.find(({ address }) => !isPublicAddress(address))
      if (!first || refused) callback(new AddressRefused(`${host} has the address ${refused?.address}`), [])
      else if (options.all) callback(null, addresses)
      else callback(null, first.address, first.family)
    })
}

/**
 * Connects undici only to public addresses. The address is checked when the socket is opened: neither a name that resolves differently the
 * second time nor an unusual spelling of an address gets past this.
 */
export function guardedConnector(lookup: LookupAll = systemLookup): buildConnector.connector {
  const connect = buildConnector({ allowH2: false, timeout: 10_000, lookup: guardLookup(lookup) })
  return (options, callback) => {
    const host = options.hostname.replace(/^\[|\]$/g, '')
    if (isIP(host) && !isPublicAddress(host)) callback(new AddressRefused(`${host} is not public`), null)
    else connect(options, callback)
  }
}
