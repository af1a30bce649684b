import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { keepTokenizer } from './keep-tokenizer.ts'
import { temporaryFolder } from './testing/run-fixtures.ts'

test('the tokenizer is kept once, without the rest of its model', async () => {
  await using folder = await temporaryFolder()
  const [model, run] = [join(folder.path, 'model'), join(folder.path, 'run')]
  await mkdir(model)
  for (const name of ['tokenizer.json', 'tokenizer_config.json', 'config.json', 'model.safetensors'])
    await writeFile(join(model, name), name)
  await keepTokenizer(run, model)
  await writeFile(join(model, 'tokenizer.json'), 'another')
  await keepTokenizer(run, model)
  const kept = join(run, 'tokenizer')
  expect((await readdir(kept)).sort()).toEqual(['tokenizer.json', 'tokenizer_config.json'])
  expect(await readFile(join(kept, 'tokenizer.json'), 'utf8')).toBe('tokenizer.json')
})

test('several policies have a folder each', async () => {
  await using folder = await temporaryFolder()
  for (const policy of ['lead', 'reader']) {
    await mkdir(join(folder.path, policy))
    await writeFile(join(folder.path, policy, 'tokenizer.json'), policy)
    await keepTokenizer(folder.path, join(folder.path, policy), policy)
  }
  for (const policy of ['lead', 'reader'])
    expect(await readFile(join(folder.path, 'tokenizer', policy, 'tokenizer.json'), 'utf8')).toBe(policy)
})

test('a run that cannot be written is named', async () => {
  await using folder = await temporaryFolder()
  await writeFile(join(folder.path, 'run'), '')
  await expect(keepTokenizer(join(folder.path, 'run'), folder.path)).rejects.toMatchObject({ code: 'STORE_READ_ONLY' })
})
