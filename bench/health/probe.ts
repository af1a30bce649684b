import { Agent, request } from 'node:http'

const everyMs = 10

/** Asks `url` every ten milliseconds until it is told to stop; sends the milliseconds from when each answer was due to come. */
const [url] = process.argv.slice(2)
const agent = new Agent({ keepAlive: true })
const waits: number[] = []
let open = 0

function ask(dueAt: number): void {
  open += 1
  const call = request(url!, { agent }, (response) => {
    response.resume().on('end', () => {
      waits.push(performance.now() - dueAt)
      open -= 1
    })
  })
  call.on('error', (error) => {
    throw error
  })
  call.end()
}

// Asked at fixed times, whether or not the last answer has come: a stall counts for every question that falls into it.
let dueAt = performance.now()
const timer = setInterval(() => {
  for (; dueAt <= performance.now(); dueAt += everyMs) ask(dueAt)
}, everyMs / 2)

process.on('message', async () => {
  clearInterval(timer)
  while (open > 0) await new Promise((resolve) => setTimeout(resolve, everyMs))
  process.send?.(waits, undefined, undefined, () => {
    agent.destroy()
    process.disconnect()
  })
})
process.send?.([])
