import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { openCassette } from './cassette.ts'

const directory = await mkdtemp(join(tmpdir(), 'cassette-'))
afterAll(() => rm(directory, { recursive: true }))
const answer = (text: string) => ({ status: 200, contentType: 'text/plain', text })

it('where the first answer stays, whoever asks again gets it, while it is recorded and later', async () => {
  const path = join(directory, 'world.jsonl')
  const recording = await openCassette({ path, mode: 'record', repeats: 'first' })
  expect(await recording.find('search', recording.occurrence('search'))).toBeNull()
  await Promise.all([recording.add('search', answer('ä 1')), recording.add('search', answer('2')), recording.add('page', answer('3'))])
  await recording.add('search', answer('4'))
  expect(await recording.find('search', recording.occurrence('search'))).toEqual(answer('ä 1'))
  expect(await recording.find('page', recording.occurrence('page'))).toEqual(answer('3'))
  await recording.close()
  expect((await readFile(path, 'utf8')).trimEnd().split('\n')).toHaveLength(2)

  const replaying = await openCassette({ path, mode: 'replay', repeats: 'first' })
  for (let again = 0; again < 3; again++) {
    expect(await replaying.find('search', replaying.occurrence('search'))).toEqual(answer('ä 1'))
  }
  expect(await replaying.find('elsewhere', replaying.occurrence('elsewhere'))).toBeNull()
  await replaying.close()
})

it('where answers stand in order, the second request gets the second', async () => {
  const path = join(directory, 'samples.jsonl')
  const recording = await openCassette({ path, mode: 'record', repeats: 'in-order' })
  await recording.add('judge', answer('first'))
  await recording.add('judge', answer('second'))
  await recording.close()
  const replaying = await openCassette({ path, mode: 'replay', repeats: 'in-order' })
  const texts: (string | undefined)[] = []
  for (let again = 0; again < 3; again++) texts.push((await replaying.find('judge', replaying.occurrence('judge')))?.text)
  expect(texts).toEqual(['first', 'second', undefined])
  await replaying.close()
})
