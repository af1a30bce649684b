import dgram from 'node:dgram'
import dns from 'node:dns'
import net from 'node:net'

// The process of one parse. Options and bytes come on standard input, and the answer leaves on standard output. It imports nothing of ours,
// so that it need read no package but the parser's.

export type ParserAnswer = { readonly value: unknown } | { readonly error: string }

function refuse(): never {
  throw new Error('A parser reaches no network.')
}

/** Closes the network, which the permissions of Node leave open before version 25. */
function closeNetwork(): void {
  Object.assign(net.Socket.prototype, { connect: refuse })
  Object.assign(net.Server.prototype, { listen: refuse })
  Object.assign(dgram.Socket.prototype, { bind: refuse, connect: refuse, send: refuse })
  for (const holder of [dns, dns.promises, dns.Resolver.prototype, dns.promises.Resolver.prototype])
    for (const name of Object.getOwnPropertyNames(holder).filter((one) => /^(?:lookup|resolve|reverse)/.test(one)))
      Object.assign(holder, { [name]: refuse })
}

async function readInput(): Promise<{ readonly options: unknown; readonly bytes: Buffer }> {
  const chunks: Buffer[] = []
  for await (const chunk of process.stdin) chunks.push(chunk)
  const input = Buffer.concat(chunks)
  const end = input.indexOf('\n')
  return { options: JSON.parse(input.toString('utf8', 0, end)), bytes: input.subarray(end + 1) }
}

async function parse(): Promise<ParserAnswer> {
  try {
    const { options, bytes } = await readInput()
    const { default: parser } = await import(process.argv[2]!)
    return { value: await parser(bytes, options) }
  } catch (error) {
    return { error: error instanceof Error ? error.message : String(error) }
  }
}

// Logs of a library and of its threads must not mix with the answer.
const write = process.stdout.write.bind(process.stdout)
process.stdout.write = process.stderr.write.bind(process.stderr) as typeof write
closeNetwork()
const answer = await parse()
write(JSON.stringify('value' in answer ? { value: answer.value ?? null } : answer), () => process.exit(0))
