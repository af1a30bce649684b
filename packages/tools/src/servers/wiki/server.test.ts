import { afterAll, describe, expect, it } from 'vitest'
import { describeToolServer } from '../../testing/describe-tool-server.ts'
import { openWebBench, openWebContext } from '../../testing/web-context.ts'
import { wikiServer } from './server.ts'
import { wikipediaStandIn } from './stand-in.ts'

const elements = Array.from({ length: 8 }, (_, index) => `Element ${index}`)
const wiki = await wikipediaStandIn({
  en: [
    {
      title: 'Chemical element',
      redirects: ['Elements'],
      description: 'species of atom',
      html: `<style>.a{}</style><p>An <b>element</b><sup class="reference">[1]</sup> is a <a href="./Atom">kind</a> of atom.</p>
        <h2>Table<span class="mw-editsection">[edit]</span></h2>
        <table><tr><th>Symbol</th><th>Name</th></tr><tr><td>H</td><td>Hydrogen</td></tr></table>
        <div class="navbox">Elements A to Z</div><p>${'Long text. '.repeat(60)}</p>`,
      summary: 'An element is a kind of atom. There are many. Some are rare.',
      categories: ['Chemistry', 'Physics', 'Matter', 'Atoms'],
      links: elements,
      revisions: [
        { id: 7, timestamp: '2010-05-01T10:00:00Z', html: '<p>There are 117 elements.</p>' },
        { id: 9, timestamp: '2016-12-01T10:00:00Z', html: '<p>There are 118 elements.</p>' },
      ],
    },
  ],
  fr: [{ title: 'Élément', html: '', links: Array.from({ length: 40 }, (_, index) => `Lien ${index}`) }],
  de: [{ title: 'Chemisches Element', html: '<p>Ein Reinstoff.</p>' }],
})
const outside = { services: [{ name: 'wikipedia', baseUrl: `${wiki.url}/*` }], web: { userAgent: 'us (me@example.com)' } }
const bench = await openWebBench(wikiServer, outside)
afterAll(async () => {
  await bench.close()
  await wiki.close()
})
const title = 'Chemical element'

describeToolServer({
  server: wikiServer,
  examples: {
    search_wikipedia: { query: 'element' },
    get_article_content: { title },
    get_article_summary: { title },
    get_article_categories: { title },
    get_article_links: { title },
    get_article_history: { title, date: '2016-12-01' },
    get_wikipedia_capabilities: {},
  },
  open: (overrides) => openWebContext(outside, overrides),
})

describe('wiki-server', () => {
  it('finds articles, and names itself with whom to write to', async () => {
    expect(await bench.call('search_wikipedia', { query: 'element' })).toBe('1. Chemical element (species of atom)\nabout element & more')
    expect(await bench.call('search_wikipedia', { query: 'no such thing' })).toBe('Nothing was found; try other words.')
    expect(wiki.requests[0]!.headers['user-agent']).toBe('us (me@example.com)')
  })

  it('reads an article in pieces, with its tables and without marks for readers of the page', async () => {
    const first = await bench.call('get_article_content', { title, limit: 200 })
    expect(first).toMatchInlineSnapshot(`
      "# Chemical element

      An **element** is a kind of atom.

      ## Table

      | Symbol | Name |
      | --- | --- |
      | H | Hydrogen |

      Long text. Long text. Long text. Long text. Long text. Long text. Long text. Long text. Long text. Long t

      [Characters 1 to 200 of 754; continue with offset 200.]"
    `)
    expect(await bench.call('get_article_content', { title, offset: 700 })).not.toContain('continue with')
    expect(await bench.call('get_article_content', { title, include_full_content: false })).toBe(
      `# ${title}\n\nAn element is a kind of atom. There are many. Some are rare.`,
    )
    expect(await bench.call('get_article_content', { title, include_full_content: false, offset: 99 })).toContain(
      'error: Offset 99 is behind the end',
    )
    expect(await bench.call('get_article_content', { title: 'chemisches element', language: 'de' })).toBe(
      '# Chemisches Element\n\nEin Reinstoff.',
    )
  })

  it('reads the first sentences, and lists categories and links over several rounds', async () => {
    expect(await bench.call('get_article_summary', { title, sentences: 2 })).toBe(
      `# ${title}\n\nAn element is a kind of atom. There are many.`,
    )
    expect(await bench.call('get_article_categories', { title })).toBe('Chemistry\nPhysics\nMatter\nAtoms')
    const links = await bench.call('get_article_links', { title, limit: 5 })
    expect(links).toBe(`${elements.slice(0, 5).join('\n')}\n[1 to 5 of 8; continue with offset 5.]`)
    expect(await bench.call('get_article_links', { title, limit: 5, offset: 5 })).toBe(elements.slice(5).join('\n'))
  })

  it('says that an article has more links than can be listed', async () => {
    const input = { title: 'Élément', language: 'fr' }
    expect(await bench.call('get_article_links', { ...input, limit: 5 })).toContain('\n[1 to 5 of more than 30; continue with offset 5.]')
    expect(await bench.call('get_article_links', { ...input, offset: 28 })).toBe(
      'Lien 28\nLien 29\n[There are more, which cannot be listed; read the article with get_article_content.]',
    )
    expect(await bench.call('get_article_links', { ...input, offset: 30 })).toMatch(/^.There are more, which cannot be listed/)
  })

  it('reads an article as it was at the end of a day', async () => {
    expect(await bench.call('get_article_history', { title, date: '2016-11-30' })).toBe(
      `# ${title}\nRevision of 2010-05-01T10:00:00Z\n\nThere are 117 elements.`,
    )
    expect(await bench.call('get_article_history', { title, date: '2016-12-01' })).toContain('118 elements')
    expect(await bench.call('get_article_history', { title, date: '2001-01-01' })).toBe(
      `error: The article "${title}" did not exist yet on 2001-01-01; ask for a later day.`,
    )
  })

  it.each(['get_article_content', 'get_article_summary', 'get_article_history'])(
    '%s reads what a search finds, and what a title leads to, where it is told to',
    async (name) => {
      const read = (input: object) => bench.call(name, { ...(name === 'get_article_history' && { date: '2016-12-01' }), ...input })
      expect(await read({ title: 'atom' })).toBe(
        'error: The Wikipedia in "en" has no article "atom"; find its title with search_wikipedia.',
      )
      expect(await read({ title: 'atom', auto_suggest: true })).toMatch(/^# Chemical element\n/)
      expect(await read({ title: 'phlogiston', auto_suggest: true })).toContain('has no article "phlogiston"')
      expect(await read({ title, auto_suggest: true })).toBe(await read({ title }))
      expect(await read({ title: 'Elements' })).toMatch(/^# Chemical element\n/)
    },
  )

  it.each(['get_article_content', 'get_article_summary'])(
    '%s does not follow a title that leads elsewhere, where it must not',
    async (name) => {
      expect(await bench.call(name, { title: 'Elements', redirect: false })).toBe(
        'error: "Elements" only leads to the article "Chemical element"; ask for that one, or leave redirect out.',
      )
      expect(await bench.call(name, { title, redirect: false })).toBe(await bench.call(name, { title }))
    },
  )

  it('answers as JSON where it is told to, with all that it knows', async () => {
    const json = async (name: string, input: object) => JSON.parse(await bench.call(name, { ...input, output_format: 'json' }))
    expect(await json('get_article_summary', { title, sentences: 1 })).toEqual({ title, summary: 'An element is a kind of atom.' })
    expect(await json('get_article_categories', { title, limit: 1 })).toMatchObject({ titles: ['Chemistry'], total: 4, nextOffset: 1 })
    expect(await json('search_wikipedia', { query: 'element' })).toMatchObject({ articles: [{ title }] })
  })

  it.each(['get_article_content', 'get_article_summary', 'get_article_links'])('%s says that there is no such article', async (tool) => {
    expect(await bench.call(tool, { title: '../../admin?x=1#y' })).toBe(
      'error: The Wikipedia in "en" has no article "../../admin?x=1#y"; find its title with search_wikipedia.',
    )
  })
})
