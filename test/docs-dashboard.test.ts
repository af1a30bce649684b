import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { repository } from './support/run-cli.ts'

it('the page about a run that does not learn names what the dashboard shows', async () => {
  const folder = join(repository, 'packages/dashboard/page')
  const files = (await readdir(folder)).filter((name) => /(?<!\.test)\.tsx?$/.test(name))
  const shown = (await Promise.all(files.map((name) => readFile(join(folder, name), 'utf8')))).join('\n')
  const page = await readFile(join(repository, 'docs/3.guides/when-it-does-not-learn.md'), 'utf8')
  const names = new Set(Array.from(page.matchAll(/\*\*([^*]+)\*\*/g), ([, name]) => name as string))
  expect(names.size).toBeGreaterThan(15)
  expect([...names].filter((name) => !new RegExp(`['">]${name}['"<]`).test(shown))).toEqual([])
})
