// Builds the page to dist/page: a script, a style sheet, two fonts and the document that names them.
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'vite'

const folder = join(dirname(fileURLToPath(import.meta.url)), '..')

await build({
  configFile: false,
  root: join(folder, 'page'),
  logLevel: 'warn',
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    outDir: join(folder, 'dist', 'page'),
    emptyOutDir: true,
    target: 'es2022',
    // Fonts stay files, so that the style sheet needs no data addresses.
    assetsInlineLimit: 0,
    modulePreload: false,
  },
})
