import { expect, it } from 'vitest'
import { siblingModule } from './sibling-module.ts'

it('a module beside a source is a source, and beside a built one a built one', () => {
  expect(siblingModule('worker', 'file:///a%20b/pool.ts').href).toBe('file:///a%20b/worker.ts')
  expect(siblingModule('worker', 'file:///a/dist/pool.js').href).toBe('file:///a/dist/worker.js')
})
