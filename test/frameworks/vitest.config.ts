// Agents of other frameworks, installed apart from the workspace.
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
    include: ['test/frameworks/**/*.test.ts'],
    globalSetup: [fileURLToPath(new URL('install.ts', import.meta.url))],
    fileParallelism: false,
    testTimeout: 300_000,
    hookTimeout: 300_000,
  },
})
