import { createServer } from 'node:net'

/** A loopback port nobody listens on at this moment. */
export async function freePort(): Promise<number> {
  const [port] = await freePorts(1)
  return port ?? 0
}

/** Several different ones: all are held open until the last is known. */
export async function freePorts(count: number): Promise<number[]> {
  const probes = await Promise.all(Array.from({ length: count }, openProbe))
  await Promise.all(probes.map(({ close }) => close()))
  return probes.map(({ port }) => port)
}

function openProbe(): Promise<{ port: number; close(): Promise<void> }> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.on('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      const port = address !== null && typeof address === 'object' ? address.port : 0
      resolve({ port, close: () => new Promise((closed) => server.close(() => closed())) })
    })
  })
}
