/**
 * A unique name for each of these addresses: the host, with the path if a host has several, and a number if that is not enough. Nothing
 * else of an address is in it, and thus no key.
 */
export function serverNames(addresses: readonly string[]): readonly string[] {
  const urls = addresses.map((address) => new URL(address))
  const hosts = urls.map(({ host }) => host)
  const isAlone = (name: string, among: readonly string[]) => among.indexOf(name) === among.lastIndexOf(name)
  const full = urls.map(({ host, pathname }) => (isAlone(host, hosts) ? host : `${host}${pathname.replace(/\/+$/, '')}`))
  return full.map((name, index) => (isAlone(name, full) ? name : `${name} #${index + 1}`))
}
