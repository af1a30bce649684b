// What needs parts of Debian: jails of the kernel's namespaces, as root and as a plain user.
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
    include: ['test/environment/**/*.test.ts'],
    globalSetup: [fileURLToPath(new URL('install.ts', import.meta.url))],
    fileParallelism: false,
  },
})
