// Every page of the dashboard in Chromium.
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
    include: ['test/dashboard/**/*.test.ts'],
    globalSetup: [fileURLToPath(new URL('install.ts', import.meta.url))],
  },
})
