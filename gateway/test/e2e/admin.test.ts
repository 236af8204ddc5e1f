import { beforeAll, describe, expect, it } from 'vitest'
import { type Gateway, startGateway } from '../support/gateway.ts'
import { llmConfig } from '../support/llm-config.ts'
import { rawExchange, statusesOf } from '../support/raw-http.ts'

let gateway: Gateway

beforeAll(async () => {
  gateway = await startGateway(llmConfig({}), { lifetime: 'file' })
})

async function statusWith(headers: string, line = 'GET /api/config/status'): Promise<number | undefined> {
  return statusesOf(await rawExchange(gateway.adminPort, `${line} HTTP/1.1\r\n${headers}\r\n`))[0]
}

describe('the admin address', () => {
  it('returns the active configuration', async () => {
    expect(await gateway.status()).toMatchObject({
      synchronized: true,
      revision: 1,
      appliedAt: expect.any(String),
    })
  })

  it.each([['127.0.0.1'], ['localhost'], ['[::1]']])(
    'accepts the host %s with its own port',
    async (host) => {
      expect(await statusWith(`host: ${host}:${gateway.adminPort}\r\n`)).toBe(200)
    },
  )

  it.each([
    ['another name', () => `host: evil.example:${gateway.adminPort}\r\n`],
    ['a name that begins like a loopback one', () => `host: localhost.evil.example:${gateway.adminPort}\r\n`],
    [
      'an address that begins like a loopback one',
      () => `host: 127.0.0.1.evil.example:${gateway.adminPort}\r\n`,
    ],
    ['another port', () => `host: localhost:${gateway.port}\r\n`],
    ['no port', () => 'host: localhost\r\n'],
    ['user information', () => `host: localhost@evil.example:${gateway.adminPort}\r\n`],
  ])('refuses a host that is %s', async (_, header) => {
    expect(await statusWith(header())).toBe(403)
  })

  it('refuses a request without a host', async () => {
    expect([400, 403]).toContain(await statusWith(''))
  })

  it.each([
    ['http://evil.example', 403],
    ['null', 403],
    ['https://localhost', 403],
  ])('answers the origin %s with %d', async (origin, status) => {
    expect(await statusWith(`host: localhost:${gateway.adminPort}\r\norigin: ${origin}\r\n`)).toBe(status)
  })

  it('accepts its own origin', async () => {
    const own = `localhost:${gateway.adminPort}`
    expect(await statusWith(`host: ${own}\r\norigin: http://${own}\r\n`)).toBe(200)
  })

  it('grants no other origin anything', async () => {
    const received = await rawExchange(
      gateway.adminPort,
      `OPTIONS /api/config/status HTTP/1.1\r\nhost: localhost:${gateway.adminPort}\r\norigin: http://evil.example\r\n` +
        'access-control-request-method: PUT\r\n\r\n',
    )
    expect(received.toLowerCase()).not.toContain('access-control-allow-origin')
  })

  it('refuses unknown paths and methods', async () => {
    const own = `host: localhost:${gateway.adminPort}\r\n`
    expect(await statusWith(own, 'GET /etc/passwd')).toBe(404)
    expect(await statusWith(own, 'GET /api/config/__proto__')).toBe(404)
    expect(await statusWith(own, 'DELETE /api/config/status')).toBe(405)
  })

  it('is reachable through no gateway port', async () => {
    const response = await fetch(`${gateway.url}/api/config/status`)
    expect(response.status).not.toBe(200)
  })
})

describe('the probes', () => {
  it('answer on their own addresses only', async () => {
    const readiness = await fetch(`http://127.0.0.1:${gateway.readinessPort}/healthz/ready`)
    expect([readiness.status, await readiness.text()]).toEqual([200, 'ready\n'])
    expect((await fetch(`http://127.0.0.1:${gateway.readinessPort}/metrics`)).status).toBe(404)
    expect((await fetch(`http://127.0.0.1:${gateway.statsPort}/healthz/ready`)).status).toBe(404)
    const method = await fetch(`http://127.0.0.1:${gateway.readinessPort}/healthz/ready`, { method: 'POST' })
    expect(method.status).toBe(405)
  })
})
