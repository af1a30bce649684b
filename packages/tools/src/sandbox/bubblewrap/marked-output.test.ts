import { expect, test } from 'vitest'
import { BoundedOutput } from '../bounded-output.ts'
import { MarkedOutput } from './marked-output.ts'

const stream = 'before\x1eno mark \x1eMARK-not\x1eMARK 17\nafter'

test.each(Array.from({ length: stream.length }, (_, at) => at))('the mark is found when the stream is cut at %i', (at) => {
  const output = new BoundedOutput(1000)
  const results: string[] = []
  const marked = new MarkedOutput(output, (result) => results.push(`${result} after ${JSON.stringify(output.take().output)}`))
  marked.expect('\x1eMARK ')
  marked.add(Buffer.from(stream.slice(0, at)))
  marked.add(Buffer.from(stream.slice(at)))
  marked.end()
  // Bytes after the marked line belong to the next command.
  expect(results).toEqual([`17 after "before\\u001eno mark \\u001eMARK-not"`])
  expect(output.take().output).toBe('after')
})

test('a stream that ends without the mark is output to its end', () => {
  const output = new BoundedOutput(1000)
  const marked = new MarkedOutput(output, () => expect.unreachable())
  marked.expect('\x1eMARK ')
  marked.add(Buffer.from('text\x1eMAR'))
  marked.end()
  expect(output.take().output).toBe('text\x1eMAR')
})
