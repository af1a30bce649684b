// What needs a GPU and a model on disk: each test says what it misses where it is skipped.
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'
import { base } from '../../vitest.base.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

export default defineConfig({
  ...base,
  root,
  test: {
    ...base.test,
    exclude: ['**/node_modules/**', '**/dist/**'],
    include: ['test/gpu/**/*.test.ts'],
    fileParallelism: false,
    testTimeout: 3_600_000,
    hookTimeout: 3_600_000,
  },
})
