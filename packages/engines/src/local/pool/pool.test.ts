import { spawnSync } from 'node:child_process'
import { Worker } from 'node:worker_threads'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { createNumbers } from '../goldens/goldens.ts'
import { createTrainer, gradientOnly, randomRows, smallModel, toSample } from '../goldens/trainer.ts'
import { word } from './control.ts'

/** A second or so of work for two threads. */
const bigModel = smallModel({ hiddenSize: 128, headDim: 32, intermediateSize: 384, layers: 3, contextLength: 512 })
const bigRows = randomRows(createNumbers(1), new Array<number>(48).fill(500), bigModel.vocabularySize)
const longUpdate = {
  samples: bigRows.map((tokenIds, i) => toSample({ tokenIds }, i)),
  loss: { kind: 'sft', aggregation: 'token-mean' },
  optimizer: gradientOnly,
} as const

/** Workers that were started while `start` ran. The tests end them as the system would. */
async function watchWorkers<T>(start: () => Promise<T>): Promise<{ result: T; workers: Worker[] }> {
  const workers: Worker[] = []
  const once = vi.spyOn(Worker.prototype, 'once').mockImplementation(function (this: Worker, ...args: Parameters<Worker['once']>) {
    if (!workers.includes(this)) workers.push(this)
    return Worker.prototype.addListener.apply(this, args)
  } as Worker['once'])
  const result = await start()
  once.mockRestore()
  return { result, workers }
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

afterEach(() => {
  vi.restoreAllMocks()
})

describe('a pool', () => {
  it('rejects what runs and what waits when a worker dies in the middle of a command', async () => {
    const { result: trainer, workers } = await watchWorkers(() => createTrainer({ model: bigModel }))
    const update = trainer.learner.update(longUpdate)
    await pause(30)
    const outcomes = Promise.allSettled([update, trainer.pool.run('pack')])
    void workers[1]!.terminate()
    for (const outcome of await outcomes) {
      expect(outcome).toMatchObject({ status: 'rejected', reason: { code: 'POLICY_WORKER_DIED' } })
    }
    await expect(trainer.pool.run('pack')).rejects.toMatchObject({
      code: 'POLICY_WORKER_DIED',
      message: expect.stringContaining('Worker 1'),
    })
    await trainer.pool.close()
  })

  it('reports a worker that died while nothing ran', async () => {
    const { result: trainer, workers } = await watchWorkers(() => createTrainer({ model: smallModel() }))
    await workers[0]!.terminate()
    await expect(trainer.pool.run('pack')).rejects.toMatchObject({ code: 'POLICY_WORKER_DIED' })
    await trainer.pool.close()
  })

  it('fails a command that does not end before its deadline', async () => {
    await using trainer = await createTrainer({ model: smallModel() })
    const { layout, views } = trainer.pool
    // With a count below zero, the workers wait at the barrier for peers that do not exist.
    Atomics.store(views.i32, layout.control / 4 + word.barrierCount, -1000)
    const hung = trainer.pool.run('apply', { deadlineMs: 10 })
    await expect(hung).rejects.toMatchObject({ code: 'POLICY_WORKER_DIED', message: expect.stringContaining('command apply did not end') })
    await expect(trainer.pool.run('pack')).rejects.toMatchObject({ code: 'POLICY_WORKER_DIED' })
  })

  it('does not keep a process alive that forgot to close it', () => {
    const script = `
      import { createTrainer, smallModel } from ${JSON.stringify(new URL('../goldens/trainer.ts', import.meta.url).href)}
      const trainer = await createTrainer({ model: smallModel() })
      await trainer.pool.run('pack')
      console.log('ran')`
    const { status, stdout } = spawnSync(process.execPath, ['--input-type=module', '--eval', script], {
      encoding: 'utf8',
      timeout: 120_000,
    })
    expect({ status, stdout }).toEqual({ status: 0, stdout: 'ran\n' })
  })

  it('leaves the main thread free while a command runs', async () => {
    await using trainer = await createTrainer({ model: bigModel, threads: 1 })
    let ticks = 0
    const timer = setInterval(() => ticks++, 5)
    await trainer.learner.update({ ...longUpdate, samples: longUpdate.samples.slice(0, 8) })
    clearInterval(timer)
    expect(ticks).toBeGreaterThan(10)
  })

  it('runs commands in the order they came, preparing each when its turn comes', async () => {
    await using trainer = await createTrainer({ model: smallModel() })
    const order: string[] = []
    const run = (name: string): Promise<unknown> =>
      trainer.pool.run('pack', { prepare: () => order.push(`start ${name}`) }).then(() => order.push(`end ${name}`))
    await Promise.all([run('a'), run('b'), run('c')])
    expect(order.filter((line) => line.startsWith('start'))).toEqual(['start a', 'start b', 'start c'])
    expect(order.indexOf('end a')).toBeLessThan(order.indexOf('end b'))
  })

  it('goes on after a command whose preparation threw', async () => {
    await using trainer = await createTrainer({ model: smallModel() })
    const refused = trainer.pool.run('pack', {
      prepare: () => {
        throw new RangeError('too long')
      },
    })
    await expect(refused).rejects.toThrow('too long')
    await trainer.pool.run('pack')
  })

  it('rejects a command that runs when it is closed, ends its workers, and refuses more', async () => {
    const { result: trainer, workers } = await watchWorkers(() => createTrainer({ model: bigModel }))
    const update = expect(trainer.learner.update(longUpdate)).rejects.toMatchObject({ code: 'POLICY_UNAVAILABLE' })
    await pause(50)
    await trainer.pool.close()
    await update
    expect(workers.map(({ threadId }) => threadId)).toEqual([-1, -1])
    await expect(trainer.pool.run('pack')).rejects.toMatchObject({ code: 'POLICY_UNAVAILABLE' })
    await trainer.pool.close()
  })

  it('refuses a model that does not fit into the address space, and says how large it is', async () => {
    const model = smallModel({ vocabularySize: 150_000, hiddenSize: 2_048 })
    await expect(createTrainer({ model })).rejects.toMatchObject({
      code: 'CONFIG_INVALID',
      message: expect.stringMatching(/needs \d+\.\d GiB/),
    })
  })
})
