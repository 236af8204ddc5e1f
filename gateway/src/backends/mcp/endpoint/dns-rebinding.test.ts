import { describe, expect, it } from 'vitest'
import { mcpExchange } from '../../../../test/fixtures/mcp.ts'
import type { Headers } from '../../../net/http/headers.ts'
import { localOnly } from './dns-rebinding.ts'

const guarded = localOnly(() => ({ status: 200, headers: {}, body: undefined }))

async function statusOf(host: string, headers: Headers = {}): Promise<number> {
  const exchange = mcpExchange('POST', { headers })
  const facts = { ...exchange.facts, request: { ...exchange.facts.request, host } }
  return (await guarded({ ...exchange, facts })).status
}

describe('localOnly', () => {
  it.each(['localhost', 'LOCALHOST:80', '127.0.0.1', '127.0.0.1:3000', '[::1]', '[::1]:3000'])(
    'serves the host %s',
    async (host) => {
      expect(await statusOf(host)).toBe(200)
    },
  )

  it.each([
    ...['example.com', 'localhost.example.com', 'localhost.', '127.0.0.2', '[::2]:80', '', 'a@localhost'],
    ...['localhost:80@example.com', 'localhost:99999', '[localhost]:80', '127.0.0.1.nip.io:80'],
  ])('refuses the host %j', async (host) => {
    expect(await statusOf(host)).toBe(403)
  })

  it.each(['http://localhost', 'https://localhost:8443', 'http://127.0.0.1:6274', 'http://[::1]:80'])(
    'serves the origin %s',
    async (origin) => {
      expect(await statusOf('localhost', { origin })).toBe(200)
    },
  )

  it.each<[string, string | string[]]>([
    ['of another site', 'https://example.com'],
    ['null', 'null'],
    ['of another scheme', 'file://localhost'],
    ['with a user', 'http://localhost@example.com'],
    ['with a path', 'http://localhost/'],
    ['that is empty', ''],
    ['that is a list', 'http://localhost, https://example.com'],
    ['sent twice', ['http://localhost', 'http://localhost']],
  ])('refuses an origin %s', async (_, origin) => {
    expect(await statusOf('localhost', { origin })).toBe(403)
  })
})
