import type { ViteUserConfig } from 'vitest/config'

const condition = '@aworld-train/source'

/** What every suite of tests has in common: sources run unbuilt, two processes at once. */
export const base = {
  resolve: { conditions: [condition, 'node', 'import', 'default'] },
  ssr: { resolve: { conditions: [condition, 'node', 'import', 'default'] } },
  test: {
    pool: 'forks',
    execArgv: [`--conditions=${condition}`],
    env: { NODE_OPTIONS: `--conditions=${condition}` },
    maxWorkers: 2,
    testTimeout: 30_000,
    hookTimeout: 30_000,
  },
} satisfies ViteUserConfig
