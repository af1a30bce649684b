import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ArealSettings } from '@aworld-train/trainers/areal'
import { SwiftSettings } from '@aworld-train/trainers/swift'
import { TrlSettings } from '@aworld-train/trainers/trl'
import { expect, it, test } from 'vitest'
import { trainerFacts } from '../packages/aworld-train/src/python-trainers.ts'
import { settingTerms } from '../packages/aworld-train/src/setting-terms.ts'
import { configurationPages } from './configuration-pages.ts'
import { settingRows } from './setting-rows.ts'
import { guides, withWorks, worksLines } from './works-with.ts'

const pages = configurationPages()
const page = (name: string) => pages[`docs/4.reference/${name}.md`]!
const rowsOf = (text: string) => [...text.matchAll(/^\| `(?<key>[\w.]+)` \| .* \| (?<meaning>.+) \|$/gm)].map(({ groups }) => groups!)

const units: Readonly<Record<string, RegExp>> = {
  Ms: /milliseconds/,
  Seconds: /seconds/,
  Mb: /megabytes/,
  Bytes: /bytes/,
  Tokens: /tokens/i,
}

test.each(Object.entries(pages))('%s says of every key what it means, in sentences and with its unit', (_, text) => {
  const rows = rowsOf(text.slice(text.indexOf('## At the top')))
  expect(rows.length).toBeGreaterThan(40)
  expect(rows.filter(({ meaning }) => !/^[A-Z`].*[.*]$/.test(meaning!))).toEqual([])
  const unitOf = (key: string) => Object.entries(units).find(([ending]) => key.endsWith(ending))?.[1] ?? /./
  expect(rows.filter(({ key, meaning }) => !unitOf(key!).test(meaning!))).toEqual([])
})

it('the page of the configuration has every setting of any trainer', () => {
  const keys = rowsOf(page('configuration')).map(({ key }) => key)
  expect(Object.keys(settingTerms).filter((name) => !keys.includes(name))).toEqual([])
})

it('the page of TRL, AReaL and ms-swift has every key of each once, and what differs by framework', () => {
  const text = page('trl-areal-swift-configuration')
  const keys = [...text.matchAll(/^\| `([\w.]+)` \|/gm)].map(([, key]) => key!)
  expect(new Set(keys).size).toBe(keys.length)
  const settings = [TrlSettings, ArealSettings, SwiftSettings].flatMap((schema) => settingRows(schema).map(({ key }) => key))
  expect(settings.filter((key) => !keys.includes(key))).toEqual([])
  expect(text).toMatch(/^\| `keepCheckpoints` \| no such key \| `integer ≥ 1 \\\| null`, default `2`\. .* \| no such key \|$/m)
  expect(text).toMatch(/^\| `training.klCoefficient` \| read \| refused \| read \|$/m)
  expect(text).toMatch(/^\| `evaluation.topK` \| .* \*\*It has no effect here\.\*\* \|$/m)
})

it('no page of the documentation names a source file, which no package ships', async () => {
  const root = fileURLToPath(new URL('..', import.meta.url))
  const names = (await readdir(join(root, 'docs'), { recursive: true })).filter((name) => name.endsWith('.md'))
  const texts = await Promise.all(names.map(async (name) => [name, await readFile(join(root, 'docs', name), 'utf8')] as const))
  expect(texts.filter(([, text]) => /packages\/[a-z-]+\/src|what each key means stands there/.test(text)).map(([name]) => name)).toEqual([])
})

it('every trainer has a page with what works with it', () => {
  expect(Object.keys(trainerFacts).toSorted()).toEqual(['local', ...Object.keys(guides)].toSorted())
  expect(page('configuration')).toContain(worksLines('local').join('\n'))
  expect(worksLines('areal').join('\n')).toMatch(/settings that it refuses \| .*`training\.aggregation`/)
  expect(worksLines('trl').join('\n')).toMatch(/settings without effect, which a note says \| `engine`, .*`evaluation\.greedy` \|/)
})

it('writes the table into its place in a guide, again and again, and refuses a guide without one', () => {
  const empty = '# Guide\n\n<!-- What works, written by `npm run generate`: -->\n<!-- : what works -->\n\nThe end.\n'
  const once = withWorks(empty, 'trl')
  expect(once).toContain(worksLines('trl').join('\n'))
  expect(once).toMatch(/\n\nThe end\.\n$/)
  expect(withWorks(once, 'trl')).toBe(once)
  expect(() => withWorks('# Guide\n', 'trl')).toThrow('The guide of trl has no place for what works with it')
})
