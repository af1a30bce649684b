// Builds the page to dist/page: a script, a style sheet, two fonts and the document that names them.
import { readFileSync, writeFileSync } from 'node:fs'
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

// What the page is made of asks that its licences go with it.
const parts = ['preact', '@preact/signals', '@preact/signals-core', 'uplot']
const fonts = ['@fontsource-variable/geist', '@fontsource-variable/geist-mono']
const licence = (name) => `${name}\n\n${readFileSync(join(folder, '..', '..', 'node_modules', name, 'LICENSE'), 'utf8')}`
writeFileSync(join(folder, 'dist', 'page', 'licences.txt'), [...parts, ...fonts].map(licence).join('\n\n'))
