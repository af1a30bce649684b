import type { OutwardOptions } from '@aworld-train/http'
import { searxngStandIn } from '../../packages/tools/src/servers/googlesearch/stand-in.ts'
import { arxivStandIn } from '../../packages/tools/src/servers/parxiv/stand-in.ts'
import { waybackStandIn } from '../../packages/tools/src/servers/wayback/stand-in.ts'
import { wikipediaStandIn } from '../../packages/tools/src/servers/wiki/stand-in.ts'
import { html, openStandIn } from '../../packages/tools/src/testing/stand-in.ts'
import { paperPdf } from './attachments.ts'

const site = 'https://lighthouses.test'

const pages: Readonly<Record<string, string>> = {
  '/sule': '<h1>Sule lighthouse</h1><table><tr><th>What</th><th>Value</th></tr><tr><td>Height</td><td>27 m</td></tr></table>',
  '/tide-clock': '<h1>The Halden tide clock</h1><p>It was built by Ingrid Moen. It stands at the quay.</p>',
}

const paper = {
  id: '2401.01234v1',
  title: 'Tidal clocks of the northern coast',
  authors: ['Ingrid Moen', 'Jon Aas'],
  summary: 'We compare clocks that follow the tide.',
  published: '2024-01-02T00:00:00Z',
  updated: '2024-01-02T00:00:00Z',
  primaryCategory: 'physics.ao-ph',
  categories: ['physics.ao-ph'],
  doi: '10.1000/tides.12',
  journal: 'Journal of Tides 12',
  comment: '1 page',
}

/** A page that is empty until its script makes a form, which asks the site for a fare. */
const ferryPage = `<title>Ferry</title><body><script>
  document.body.innerHTML = '<form><label>From <input></label></form><p></p>'
  document.querySelector('form').onsubmit = async (event) => {
    event.preventDefault()
    const answer = await fetch('/fare', { method: 'POST', body: document.querySelector('input').value })
    document.querySelector('p').textContent = await answer.text()
  }
</script>`

/** Crowns that a crossing costs, by its port. */
const fares: Readonly<Record<string, number>> = { Bergen: 48, Halden: 63 }

export interface World extends Required<Pick<OutwardOptions, 'services' | 'web'>> {
  close(): Promise<void>
}

/** Servers on loopback that answer as Wikipedia, arXiv, the Wayback Machine, SearXNG and a site of the web do. */
export async function openWorld(): Promise<World> {
  const web = await openStandIn(({ url: { pathname }, body }) => {
    if (pathname === '/ferry') return html(ferryPage)
    if (pathname === '/fare') return { headers: { 'content-type': 'text/plain' }, body: `A crossing costs ${fares[body]} crowns.` }
    if (pathname === '/depths.csv') return { headers: { 'content-type': 'text/csv' }, body: 'place,depth\nSule,96\nHalden,318\nTeal,41\n' }
    const page = pages[pathname]
    return page === undefined ? html('<p>There is no such page.</p>', 404) : html(`<html><body>${page}</body></html>`)
  })
  const wikipedia = await wikipediaStandIn({
    en: [
      {
        title: 'Teal Bridge',
        html: '<p>The Teal Bridge was opened in 1931. It has 11 spans.</p>',
        revisions: [
          { id: 1, timestamp: '2018-03-04T00:00:00Z', html: '<p>The Teal Bridge has 9 spans.</p>' },
          { id: 2, timestamp: '2021-03-04T00:00:00Z', html: '<p>The Teal Bridge has 11 spans.</p>' },
        ],
      },
    ],
  })
  const arxiv = await arxivStandIn([paper], (id) => (id === '2401.01234' ? paperPdf : null))
  const wayback = await waybackStandIn([
    { url: `${site}/tickets`, timestamp: '20120501000000', html: '<p>A ticket costs 70 crowns.</p>' },
    { url: `${site}/tickets`, timestamp: '20150501000000', html: '<p>A ticket costs 85 crowns.</p>' },
    { url: `${site}/tickets`, timestamp: '20200501000000', html: '<p>A ticket costs 120 crowns.</p>' },
  ])
  const searxng = await searxngStandIn((query) => [{ title: query, url: `${site}/tide-clock`, snippet: 'A clock at the quay.' }])
  const addresses = { wikipedia: `${wikipedia.url}/*`, arxiv: arxiv.url, wayback: wayback.url, searxng: searxng.url }
  return {
    services: Object.entries(addresses).map(([name, baseUrl]) => ({ name, baseUrl })),
    web: { mirrors: { [site]: web.url } },
    close: async () => void (await Promise.all([web, wikipedia, arxiv, wayback, searxng].map((standIn) => standIn.close()))),
  }
}
