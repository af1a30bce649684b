import { fileURLToPath } from 'node:url'
import { lead, reader } from './warm-up.ts'

/** Makes the checkpoints that ship: seed 1, plain SIMD, so that every machine makes the same bytes. */
for (const [name, warmUp] of Object.entries({ lead, reader })) {
  await warmUp({
    directory: fileURLToPath(new URL(`./model/${name}`, import.meta.url)),
    seed: 1,
    simd: 'plain',
    threads: null,
    signal: new AbortController().signal,
    onProgress(done, total, { loss }) {
      if (done % 50 === 0) process.stdout.write(`${name} ${done}/${total}  loss ${loss?.toFixed(4)}\n`)
    },
  })
}
