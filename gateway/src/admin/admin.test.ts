import { describe, expect, it } from 'vitest'
import { createCancellation } from '../lib/cancellation.ts'
import type { IncomingRequest } from '../net/http-server.ts'
import { createAdmin } from './admin.ts'

const admin = createAdmin({
  port: () => 15000,
  status: () => ({ synchronized: true, revision: 1, appliedAt: 'now', lastError: undefined }),
  schema: { title: 'the schema' },
  version: '1.2.3',
})

function get(target: string, headers: Record<string, string> = {}, method = 'GET') {
  const request: IncomingRequest = {
    method,
    target,
    version: '1.1',
    headers: { host: '127.0.0.1:15000', ...headers },
    scheme: 'http',
    serverName: undefined,
    upgrade: undefined,
    informational: undefined,
    address: '127.0.0.1',
    port: 1,
    body: undefined,
    cancellation: createCancellation(),
    startedAt: 0,
  }
  const reply = admin(request)
  return { status: reply.status, body: JSON.parse(String(reply.body)) }
}

describe('createAdmin', () => {
  it('answers the status and the schema', () => {
    expect(get('/api/config/status')).toEqual({
      status: 200,
      body: { version: '1.2.3', synchronized: true, revision: 1, appliedAt: 'now' },
    })
    expect(get('/api/config/schema/').body).toEqual({ title: 'the schema' })
  })

  it.each(['localhost:15000', '[::1]:15000', '127.0.0.1:15000', '127.9.9.9:15000', 'LOCALHOST:15000'])(
    'serves Host %s',
    (host) => {
      expect(get('/api/config/status', { host }).status).toBe(200)
    },
  )

  it.each([
    'evil.example:15000',
    '127.0.0.1',
    '127.0.0.1:80',
    '127.0.0.1.evil.example:15000',
    '',
    '10.0.0.1:15000',
  ])('refuses Host %j', (host) => {
    expect(get('/api/config/status', { host }).status).toBe(403)
  })

  it.each(['http://evil.example', 'null', 'https://127.0.0.1:15000', 'http://localhost:15000'])(
    'refuses Origin %s on 127.0.0.1',
    (origin) => {
      expect(get('/api/config/status', { origin }).status).toBe(403)
    },
  )

  it('serves its own origin', () => {
    expect(get('/api/config/status', { origin: 'http://127.0.0.1:15000' }).status).toBe(200)
  })

  it.each(['/', '/api', '/constructor', '/__proto__', '/%zz'])('answers 404 for %s', (target) => {
    expect(get(target).status).toBe(404)
  })

  it('answers 405 for a write', () => {
    expect(get('/api/config/status', {}, 'PUT').status).toBe(405)
  })
})
