import { describe, expect, it } from 'vitest'
import { fixtureConnection } from '../../test/fixtures/pipeline.ts'
import { createCancellation } from '../lib/cancellation.ts'
import type { IncomingRequest } from '../net/http/incoming-request.ts'
import { createAdmin } from './admin.ts'

const admin = createAdmin({
  port: () => 15000,
  api: async ({ method, target }) => ({
    status: 200,
    headers: {},
    body: Buffer.from(JSON.stringify({ method, target })),
  }),
})

async function get(target: string, headers: Record<string, string> = {}, method = 'GET') {
  const request: IncomingRequest = {
    method,
    target,
    version: '1.1',
    headers: { host: '127.0.0.1:15000', ...headers },
    connection: fixtureConnection(),
    upgrade: undefined,
    informational: undefined,
    body: undefined,
    cancellation: createCancellation(),
    startedAt: 0,
  }
  const reply = await admin(request)
  return { status: reply.status, body: JSON.parse(String(reply.body)) }
}

describe('createAdmin', () => {
  it('forwards requests from this machine', async () => {
    expect(await get('/api/config/status?x=1', {}, 'PUT')).toEqual({
      status: 200,
      body: { method: 'PUT', target: '/api/config/status?x=1' },
    })
  })

  it.each(['localhost:15000', '[::1]:15000', '127.0.0.1:15000', '127.9.9.9:15000', 'LOCALHOST:15000'])(
    'serves Host %s',
    async (host) => {
      expect((await get('/api/config/status', { host })).status).toBe(200)
    },
  )

  it.each([
    'evil.example:15000',
    '127.0.0.1',
    '127.0.0.1:80',
    '127.0.0.1.evil.example:15000',
    '',
    '10.0.0.1:15000',
  ])('refuses Host %j', async (host) => {
    expect((await get('/api/config/status', { host })).status).toBe(403)
  })

  it.each(['http://evil.example', 'null', 'https://127.0.0.1:15000', 'http://localhost:15000'])(
    'refuses Origin %s on 127.0.0.1',
    async (origin) => {
      expect((await get('/api/config/status', { origin })).status).toBe(403)
    },
  )

  it('accepts its own origin', async () => {
    const reply = await get('/api/config/status', { origin: 'http://127.0.0.1:15000' })
    expect(reply.status).toBe(200)
  })
})
