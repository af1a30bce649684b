import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { checkTemplate } from './check-template.ts'
import { writeFormat } from './format-fixtures.test-support.ts'
import { shapeNames, writeShape } from './template-shapes.test-support.ts'

test.each(shapeNames)('a folder is judged and its branches are measured: %s', async (name) => {
  await using folder = await writeShape(name)
  const { problems, probe, branches } = await checkTemplate(folder.directory)
  const rows = Object.entries(branches).map(([scenario, reasons]) => `${scenario}: ${JSON.stringify(reasons)}`)
  expect([
    ...problems.map((problem) => problem.replaceAll(folder.directory, 'DIR')),
    probe?.syntax,
    probe?.reasoningField,
    ...rows,
  ]).toMatchSnapshot()
})

test('calls that end with a token which no file of the folder names are told apart from those of an unknown form', async () => {
  await using folder = await writeFormat('gpt-oss')
  expect((await checkTemplate(folder.directory)).problems).toEqual([])
  rmSync(join(folder.directory, 'generation_config.json'))
  expect((await checkTemplate(folder.directory)).problems).toEqual([expect.stringMatching(/has no generation_config\.json, .*add it from/)])
})
