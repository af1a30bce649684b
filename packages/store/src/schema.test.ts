import { readFile } from 'node:fs/promises'
import { DatabaseSync } from 'node:sqlite'
import { expect, test } from 'vitest'
import { schema, storeVersion } from './schema.ts'

test('the page about the run directory has every table and column', async () => {
  using database = new DatabaseSync(':memory:')
  database.exec(schema)
  const tables = database.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").all()
  const columnsOf = database.prepare('SELECT name FROM pragma_table_info(?)')
  const expected = Object.fromEntries(tables.map(({ name }) => [name, columnsOf.all(name!).map((column) => column['name'])]))
  const page = await readFile(new URL('../../../docs/4.reference/run-directory.md', import.meta.url), 'utf8')
  const sections = page.split(/^##+ /m).flatMap((section) => {
    const name = /^`(\w+)`\n/.exec(section)?.[1]
    return name === undefined ? [] : [[name, Array.from(section.matchAll(/^\| `(\w+)` \| \S/gm), ([, column]) => column)] as const]
  })
  expect(Object.fromEntries(sections)).toEqual(expected)
  expect(page).toContain(`within format ${storeVersion}`)
})
