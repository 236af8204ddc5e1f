import { type ChildProcess, spawn } from 'node:child_process'
import { createServer, type ServerHttp2Stream } from 'node:http2'
import { fileURLToPath } from 'node:url'
import { createGrpcClient } from '../../src/net/grpc-client.ts'
import { compileGlobalRateLimit } from '../../src/policies/rate-limit/global/global.ts'
import { fixtureContext, fixtureExchange } from '../../test/fixtures/pipeline.ts'

// CPU cost of a check at a rate limit service: node gateway/bench/global-limits.bench.ts
// The service is a separate process that accepts immediately.

const calls = 20_000
const atOnce = 32

/** Code OK, and one status: 1,000,000 per hour, 999,999 left, 1,800 seconds to go. */
const answer = Buffer.from([
  0, 0, 0, 0, 23, 8, 1, 18, 19, 8, 1, 18, 6, 8, 192, 132, 61, 16, 3, 24, 191, 132, 61, 34, 3, 8, 136, 14,
])

if (process.argv[2] === 'service') serve()
else await measure()

function serve(): void {
  const server = createServer()
  server.on('stream', (stream: ServerHttp2Stream) => {
    stream.resume()
    stream.on('end', () => {
      stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true })
      stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
      stream.end(answer)
    })
  })
  server.listen(0, '127.0.0.1', () => {
    const address = server.address()
    process.stdout.write(`${typeof address === 'object' ? address?.port : ''}\n`)
  })
}

async function measure(): Promise<void> {
  const service = spawn(process.execPath, [fileURLToPath(import.meta.url), 'service'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const grpc = createGrpcClient()
  try {
    const context = { ...fixtureContext(), grpc }
    const { beforeBody } = compileGlobalRateLimit(
      {
        host: `127.0.0.1:${await portOf(service)}`,
        domain: 'bench',
        timeout: '10s',
        descriptors: [
          {
            entries: [
              { key: 'user', value: 'apiKey.id' },
              { key: 'path', value: 'request.path' },
            ],
          },
        ],
      },
      context,
      { scope: 'bench', hasTokens: false },
    )
    const check = async () => {
      const exchange = fixtureExchange({}, { apiKey: { id: 'someone' } })
      if ((await beforeBody?.onRequest?.(exchange)) !== undefined) throw new Error('refused')
    }
    const nothing = await spent(async () => void fixtureExchange({}, { apiKey: { id: 'someone' } }))
    await spent(check)
    for (let round = 0; round < 3; round++) {
      const each = await spent(check)
      console.log(`a check at the service: ${(each - nothing).toFixed(1)} us of CPU`)
    }
  } finally {
    grpc.close()
    service.kill()
  }
}

function portOf({ stdout }: ChildProcess): Promise<number> {
  return new Promise((resolve) => stdout?.once('data', (text) => resolve(Number(String(text)))))
}

/** CPU time of this process for each call, in microseconds. */
async function spent(call: () => Promise<void>): Promise<number> {
  const before = process.cpuUsage()
  let started = 0
  const run = async () => {
    while (started < calls) {
      started += 1
      await call()
    }
  }
  await Promise.all(Array.from({ length: atOnce }, run))
  const { user, system } = process.cpuUsage(before)
  return (user + system) / calls
}
