import { defineConfig } from 'vitest/config'

const condition = '@aworld-train/source'

export default defineConfig({
  resolve: { conditions: [condition, 'node', 'import', 'default'] },
  ssr: { resolve: { conditions: [condition, 'node', 'import', 'default'] } },
  test: {
    exclude: ['**/node_modules/**', '**/dist/**', 'test/frameworks/**', 'test/trainers/**'],
    include: ['packages/*/src/**/*.test.ts', 'examples/**/*.test.ts', 'test/**/*.test.ts', 'scripts/**/*.test.ts'],
    pool: 'forks',
    execArgv: [`--conditions=${condition}`],
    env: { NODE_OPTIONS: `--conditions=${condition}` },
    maxWorkers: 2,
    testTimeout: 30_000,
    hookTimeout: 30_000,
  },
})
