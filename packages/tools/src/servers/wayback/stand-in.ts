import { html, json, openStandIn, type StandIn } from '../../testing/stand-in.ts'

export interface Snapshot {
  readonly url: string
  /** `YYYYMMDDhhmmss`. */
  readonly timestamp: string
  readonly html: string
}

/** The form of an address in which the archive compares it. */
const plain = (url: string) => url.replace(/^https?:\/\/(www\.)?/, '').replace(/\/$/, '')

/** Answers as the Wayback Machine does: with its index, and with the saved pages nearest to a time. */
export function waybackStandIn(snapshots: readonly Snapshot[]): Promise<StandIn> {
  const ordered = snapshots.toSorted((a, b) => a.timestamp.localeCompare(b.timestamp))
  return openStandIn(({ url }) => {
    const versionsOf = (address: string) => ordered.filter((snapshot) => plain(snapshot.url) === plain(address))
    if (url.pathname === '/cdx/search/cdx') {
      const { url: address = '', from = '0', to = '', offset = '0', limit = '' } = Object.fromEntries(url.searchParams)
      const start = Number(offset)
      const found = versionsOf(address)
        .filter(({ timestamp }) => timestamp >= from && timestamp <= to.padEnd(14, '9'))
        .filter(({ html: body }, index, all) => body !== all[index - 1]?.html)
        .slice(start, start + Number(limit))
      return json(
        found.length === 0
          ? []
          : [['timestamp', 'original', 'mimetype'], ...found.map(({ timestamp, url: original }) => [timestamp, original, 'text/html'])],
      )
    }
    const [, time = '', address = ''] = /^\/web\/(\d+)id_\/(.*)$/.exec(`${url.pathname}${url.search}`) ?? []
    const versions = versionsOf(address)
    if (versions.length === 0) return html('<p>The Wayback Machine has not archived that URL.</p>', 404)
    const requestedTime = Number(time.padEnd(14, '0'))
    const distance = ({ timestamp }: Snapshot) => Math.abs(Number(timestamp) - requestedTime)
    const nearest = versions.reduce((best, each) => (distance(each) < distance(best) ? each : best))
    if (nearest.timestamp === time) return html(nearest.html)
    return { status: 302, headers: { location: `/web/${nearest.timestamp}id_/${nearest.url}` }, body: '' }
  })
}
