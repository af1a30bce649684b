import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { fullForms, minutesOf, sharesOf } from './full-forms.ts'

const repository = fileURLToPath(new URL('..', import.meta.url))
const suites = ['dashboard', 'environment', 'executors', 'frameworks', 'packed', 'trainers']

it('the full forms are the files of heavy suites that the quick form does not run as a whole', () => {
  const files = suites.flatMap((suite) =>
    readdirSync(join(repository, 'test', suite), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.test.ts') && !name.includes('node_modules'))
      .map((name) => `test/${suite}/${name.replaceAll('\\', '/')}`)
      .filter((file) => !readFileSync(join(repository, file), 'utf8').startsWith('// @module-tag quick')),
  )
  const listed = Object.values(fullForms).flatMap((forms) => Object.keys(forms))
  expect(listed.filter((file) => file.startsWith('test/')).toSorted()).toEqual(files.toSorted())
})

it('twenty days run each of them once, and no day of it more than twelve minutes', () => {
  const shares = sharesOf(fullForms, 20)
  const all = Object.entries(fullForms).flatMap(([suite, forms]) => Object.keys(forms).map((file) => `${suite} ${file}`))
  expect(shares.flatMap((share) => share.map(({ suite, file }) => `${suite} ${file}`)).toSorted()).toEqual(all.toSorted())
  expect(shares.map(minutesOf).filter((minutes) => minutes > 12)).toEqual([])
})
