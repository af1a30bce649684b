// Real trainers and engines, each in a Python environment that the test makes, and training that takes a minute by itself.
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
    include: ['test/trainers/**/*.test.ts'],
    fileParallelism: false,
    testTimeout: 600_000,
    hookTimeout: 600_000,
  },
})
