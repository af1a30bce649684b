import { defineConfig } from 'vitest/config'
import { base } from './vitest.base.ts'

const elsewhere = ['**/node_modules/**', '**/dist/**', 'test/environment/**', 'test/frameworks/**', 'test/gpu/**', 'test/trainers/**']

/** What needs neither a trainer nor an agent framework. */
export default defineConfig({
  ...base,
  test: {
    ...base.test,
    projects: [
      {
        extends: true,
        // Nothing there changes what a module holds, so files share a process: a fifth of the time is its start.
        test: {
          name: 'packages',
          isolate: false,
          exclude: elsewhere,
          include: ['packages/*/src/**/*.test.ts', 'examples/**/*.test.ts', 'scripts/**/*.test.ts'],
        },
      },
      { extends: true, test: { name: 'whole', exclude: elsewhere, include: ['test/**/*.test.ts'] } },
    ],
  },
})
