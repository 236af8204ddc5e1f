import { createServer } from 'node:net'

// Between a look at a port and its use by the process under test, anybody may take it. So these are ports
// that systems do not give to outgoing connections and to servers without a port of their own, and each
// worker of the test run has its own.
const first = 16_384
const perWorker = 2_048
const workers = 8

const base = first + (Number(process.env['VITEST_POOL_ID'] ?? 0) % workers) * perWorker
// Runs in other checkouts on the same machine are at another place most of the time.
let next = Math.floor(Math.random() * perWorker)

/** A currently free loopback port. */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < perWorker; tries++) {
    const port = base + next
    next = (next + 1) % perWorker
    if (await isFree(port)) return port
  }
  throw new Error(`no port is free from ${base} on`)
}

/** Several different ones. */
export async function freePorts(count: number): Promise<number[]> {
  const ports: number[] = []
  while (ports.length < count) ports.push(await freePort())
  return ports
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer()
    server.on('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })
}
