import { beforeAll, describe, expect, it } from 'vitest'
import { type Gateway, startGateway } from '../support/gateway.ts'
import { aliceKey, llmConfig } from '../support/llm-config.ts'
import { rawExchange } from '../support/raw-http.ts'

let gateway: Gateway

beforeAll(async () => {
  const cors = {
    allowOrigins: ['https://app.example.com', 'https://*.trusted.example'],
    allowMethods: ['POST'],
    allowHeaders: ['authorization', 'content-type'],
    exposeHeaders: ['x-ratelimit-remaining'],
    maxAge: '10m',
  }
  gateway = await startGateway(
    llmConfig({}, { policies: { cors, localRateLimit: [{ requests: 100, unit: 'Hours' }] } }),
    { lifetime: 'file' },
  )
})

/** Over a raw socket: fetch does not let `origin` be set, nor shows every header. */
async function exchange(method: string, headers: Record<string, string>, body = ''): Promise<string> {
  const lines = Object.entries({ host: 'x', 'content-length': String(body.length), ...headers })
  const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')
  return (
    await rawExchange(gateway.port, `${method} /v1/chat/completions HTTP/1.1\r\n${head}\r\n${body}`)
  ).toLowerCase()
}

const preflight = {
  'access-control-request-method': 'POST',
  'access-control-request-headers': 'authorization,content-type',
}

describe('a preflight', () => {
  it.each([['https://app.example.com'], ['https://a.trusted.example']])(
    'from %s is answered without a key',
    async (origin) => {
      const received = await exchange('OPTIONS', { origin, ...preflight })
      expect(received).toMatch(/^http\/1\.1 20[04]/)
      expect(received).toContain(`access-control-allow-origin: ${origin}\r\n`)
      expect(received).toMatch(/access-control-allow-methods: .*post/)
      expect(received).toMatch(/access-control-allow-headers: .*authorization/)
      expect(received).toContain('access-control-max-age: 600\r\n')
      expect(received).toMatch(/vary: .*origin/)
    },
  )

  it.each([
    ['https://evil.example'],
    ['https://trusted.example.evil.example'],
    ['https://app.example.com.evil.example'],
    ['null'],
  ])('from %s is granted nothing', async (origin) => {
    expect(await exchange('OPTIONS', { origin, ...preflight })).not.toContain('access-control-allow')
  })
})

describe('an answer', () => {
  it('of 401 can be read by an allowed origin', async () => {
    const received = await exchange('POST', { origin: 'https://app.example.com' })
    expect(received).toMatch(/^http\/1\.1 401/)
    expect(received).toContain('access-control-allow-origin: https://app.example.com\r\n')
  })

  it('exposes the headers of limits', async () => {
    const body = JSON.stringify({ model: 'echo', messages: [{ role: 'user', content: 'hi' }] })
    const headers = {
      origin: 'https://app.example.com',
      authorization: `Bearer ${aliceKey}`,
      'content-type': 'application/json',
    }
    const received = await exchange('POST', headers, body)
    expect(received).toMatch(/^http\/1\.1 200/)
    expect(received).toMatch(/access-control-expose-headers: .*x-ratelimit-remaining/)
  })

  it('without an origin carries no grant', async () => {
    expect(await exchange('POST', {})).not.toContain('access-control-allow-origin')
  })
})
