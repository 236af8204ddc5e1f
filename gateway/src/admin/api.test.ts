import { describe, expect, it } from 'vitest'
import { systemClock } from '../lib/clock.ts'
import { createWorkQueue } from '../lib/scheduling/work-queue.ts'
import { isSource } from '../net/http/body.ts'
import { refusal } from '../resources/change/change.ts'
import type { Log } from '../telemetry/log.ts'
import { createAdminApi } from './api.ts'

function world() {
  const lines: string[] = []
  const write = (_fields: object, message: string) => void lines.push(message)
  const api = createAdminApi({
    endpoints: [
      { path: '/api/things', methods: { GET: { respond: async () => ({ kind: 'json', value: ['a'] }) } } },
      {
        path: '/api/things/{id}/parts/{part}',
        methods: {
          GET: {
            query: ['full'],
            async respond({ parameters, query }) {
              return { kind: 'json', value: { ...Object.fromEntries(parameters), full: query.get('full') } }
            },
          },
          POST: {
            async respond({ readJson }) {
              const read = await readJson()
              return read.kind === 'refused' ? read : { kind: 'json', value: read.value }
            },
          },
          DELETE: { respond: async () => refusal(409, 'in use') },
          PUT: {
            respond() {
              throw new Error('disk password is hunter2')
            },
          },
        },
      },
    ],
    next: async ({ target }) => ({ status: 299, headers: {}, body: Buffer.from(JSON.stringify(target)) }),
    workQueue: createWorkQueue(systemClock),
    log: { debug: write, info: write, warn: write, error: write, audit: write } as Log,
  })
  async function call(method: string, target: string, body?: string, headers: Record<string, string> = {}) {
    const reply = await api({
      method,
      target,
      headers: { 'content-type': 'application/json', ...headers },
      body: body === undefined ? undefined : Buffer.from(body),
      address: '127.0.0.1',
    })
    if (isSource(reply.body)) throw new Error('expected a buffered body')
    return { status: reply.status, headers: reply.headers, body: JSON.parse(String(reply.body)) }
  }
  return { call, lines }
}

describe('createAdminApi', () => {
  it('serves its paths, and passes others on', async () => {
    const { call } = world()
    expect(await call('GET', '/api/things')).toMatchObject({ status: 200, body: ['a'] })
    expect(await call('HEAD', '/api/things')).toMatchObject({ status: 200 })
    expect(await call('GET', '/api/things/')).toMatchObject({ status: 200 })
    for (const target of ['/api/thing', '/api/things/1', '/api/config/status?x=1', '/'])
      expect(await call('GET', target)).toMatchObject({ status: 299, body: target })
  })

  it('decodes parameters of the path', async () => {
    const { call } = world()
    expect((await call('GET', '/api/things/a%2Fb%20c/parts/%C3%A9?full=1')).body).toEqual({
      id: 'a/b c',
      part: 'é',
      full: '1',
    })
    expect(await call('GET', '/api/things/%ff/parts/x')).toMatchObject({ status: 400 })
  })

  it('refuses unknown methods with the allowed ones', async () => {
    const { call } = world()
    const reply = await call('PATCH', '/api/things/1/parts/2')
    expect(reply).toMatchObject({ status: 405, headers: { allow: 'GET, HEAD, POST, DELETE, PUT' } })
    expect(await call('constructor', '/api/things')).toMatchObject({ status: 405 })
  })

  it('refuses unknown and repeated query parameters', async () => {
    const { call } = world()
    const path = '/api/things/1/parts/2'
    expect(await call('GET', `${path}?other=1`)).toMatchObject({
      status: 400,
      body: 'unknown query parameter other: known are full',
    })
    expect(await call('GET', `${path}?full=1&full=2`)).toMatchObject({ status: 400 })
    expect(await call('GET', '/api/things?a')).toMatchObject({ status: 400 })
  })

  it.each([
    ['{"a":1}', {}, 200],
    ['{"a":1,"a":2}', {}, 400],
    ['[]', {}, 400],
    ['', {}, 400],
    ['{}', { 'content-type': 'text/plain' }, 415],
    [`{"a":"${'x'.repeat(2 * 1024 * 1024)}"}`, {}, 413],
  ])('reads a JSON object: %.20s %j', async (body, headers, status) => {
    const { call } = world()
    expect((await call('POST', '/api/things/1/parts/2', body, headers)).status).toBe(status)
  })

  it('returns refusals as text or as a problem document', async () => {
    const { call } = world()
    expect(await call('DELETE', '/api/things/1/parts/2')).toMatchObject({ status: 409, body: 'in use' })
    const problem = await call('DELETE', '/api/things/1/parts/2', undefined, {
      accept: 'application/problem+json',
    })
    expect(problem.body).toMatchObject({ status: 409, detail: 'in use' })
  })

  it('logs unexpected errors and does not return them', async () => {
    const { call, lines } = world()
    expect(await call('PUT', '/api/things/1/parts/2', '{}')).toMatchObject({
      status: 500,
      body: 'internal error',
    })
    expect(lines.join()).toContain('admin API request failed')
  })
})
