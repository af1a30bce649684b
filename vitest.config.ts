import { defineConfig } from 'vitest/config'
import { base } from './vitest.base.ts'

/** What needs no installation; each folder of test/ with a configuration is a suite of its own. */
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
          include: ['packages/*/{page,src}/**/*.test.ts', 'examples/**/*.test.ts', 'scripts/**/*.test.ts'],
        },
      },
      { extends: true, test: { name: 'whole', include: ['test/*.test.ts'] } },
    ],
  },
})
