import { fileURLToPath } from 'node:url'
import { defineConfig, type ViteUserConfig } from 'vitest/config'

/** What every suite of tests has in common: sources run unbuilt, two processes at once. */
export const base = {
  test: {
    tags: [{ name: 'quick', description: 'What a suite can show in a few minutes; .ci/run runs these.' }],
    exclude: ['**/node_modules/**', '**/dist/**'],
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 600_000,
    hookTimeout: 600_000,
    // A condition may take longer than Vitest's second on a busy machine.
    expect: { poll: { timeout: 30_000 } },
  },
} satisfies ViteUserConfig

/** A suite of its own, which is the folder `test/NAME`: one file after another, so that each has the machine. */
export const suite = (name: string, options: ViteUserConfig['test'] = {}) =>
  defineConfig({
    ...base,
    root: fileURLToPath(new URL('.', import.meta.url)),
    test: { ...base.test, include: [`test/${name}/**/*.test.ts`], fileParallelism: false, ...options },
  })

export default base
