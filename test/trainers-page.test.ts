import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { trainerFacts } from '../packages/aworld-train/src/python-trainers.ts'
import { trainersPage } from '../scripts/trainers-page.ts'

it('a trainer of which the page says that it sits the exam has a test in which it does', async () => {
  const files = (await readdir(import.meta.dirname, { recursive: true })).filter((file) => file.endsWith('.test.ts'))
  const texts = await Promise.all(files.map((file) => readFile(join(import.meta.dirname, file), 'utf8')))
  const sitting = texts.flatMap((text) => [...text.matchAll(/^describeTrainer\('(\w+)'/gm)].map(([, name]) => name))
  const [, listed] = /Sat by (.+?)\./.exec(trainersPage()) ?? []
  expect(listed?.split(', ')).toEqual(Object.keys(trainerFacts).flatMap((name) => (sitting.includes(name) ? [`\`${name}\``] : [])))
})
