import { beforeAll, describe, expect, it } from 'vitest'
import { type Gateway, startGateway } from '../support/gateway.ts'
import { type CallOptions, call } from '../support/http-call.ts'
import { rawConnect } from '../support/raw-http.ts'
import {
  keyedEcho,
  type ResourceApi,
  resourceApi,
  sqliteUrl,
  statusWith,
  stored,
} from '../support/resource-api.ts'

/** Attacks on the admin API, directly or through a browser. None may change state or stop the process. */

const storages = [
  { storage: 'a file', url: undefined },
  { storage: 'SQLite', url: sqliteUrl },
] as const

const injections = [
  "x'; DROP TABLE tollgate_resources; --",
  'x"; DROP TABLE tollgate_resources; --',
  "' OR '1'='1",
  "x') ON CONFLICT DO NOTHING; DELETE FROM tollgate_resources; --",
  '$1; $2; ?1; :id',
  '\\',
  'a/b/../../c',
  '%00 %2e%2e',
  '<script>alert(1)</script>',
  'line\nbreak: {injected: yaml}',
  '- item # comment',
  '*anchor &alias !!js/function',
  '\u{202e}\u{0}\u{7f}',
  'ʼ ﹤ 𝒳 \u{1f600}',
]

const prototypeNames = ['__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty']

describe.each(storages)('with storage in $storage', ({ url }) => {
  let gateway: Gateway
  let api: ResourceApi
  const records = () => Promise.all(['llm.apiKey', 'llm.model'].map((kind) => api.list(kind)))

  /** A request of bare HTTP to the admin address. */
  const send = (method: string, path: string, { headers, ...options }: CallOptions = {}) =>
    call(gateway.adminPort, path, {
      method,
      host: `127.0.0.1:${gateway.adminPort}`,
      headers: { 'content-type': 'application/json', ...headers },
      ...options,
    })

  beforeAll(async () => {
    gateway = await startGateway(stored(keyedEcho, url?.()), { lifetime: 'file' })
    api = resourceApi(gateway)
    await api.create('llm.apiKey', { key: 'tg-stays' })
  })

  it.each(injections)('the text %j is only a text, wherever it stands', async (text) => {
    // Keys travel in headers, so they are printable ASCII.
    const key = /^[ -~]+$/.test(text) ? `tg ${text}` : 'tg-plain'
    const { id } = await api.create('llm.apiKey', {
      key,
      metadata: { name: text, user: text, group: text, [text]: text },
    })
    // Control characters are not allowed in names of models: those are refused, not stored otherwise.
    const answer = await api.ask('PUT', '/llm.model', {
      resources: [{ value: { name: text, provider: 'echo' } }],
    })
    const known = [...(await api.list('llm.model'))].map(({ value }) => value['name'])
    if (url !== undefined) expect(known).toEqual(answer.status === 200 ? [text] : [])
    const found = await api.ask('DELETE', `/llm.model/${encodeURIComponent(text)}`)
    expect(found.status).toBe(answer.status === 200 ? 200 : 404)
    for (const method of ['PUT', 'DELETE']) {
      const address = `/llm.apiKey/${encodeURIComponent(text)}`
      const body = method === 'PUT' ? { value: { key: 'tg-other' } } : undefined
      expect((await api.ask(method, address, body)).status).toBe(404)
      const kind = await api.ask(method, `/${encodeURIComponent(text)}/x`, body)
      expect(kind.status).toBe(400)
    }
    await api.remove('llm.apiKey', id)
    expect(await statusWith(gateway, 'tg-stays')).toBe(200)
  })

  it.each(prototypeNames)('the name %s is no more than a name', async (name) => {
    const answer = await api.ask('PUT', '/llm.model', { resources: [{ value: { name, provider: 'echo' } }] })
    if (answer.status === 200) await api.remove('llm.model', name)
    for (const kind of ['llm.policy', 'mcp.policy']) {
      const put = await api.ask('PUT', `/${kind}/${name}`, { value: {} })
      expect(put.status).toBeGreaterThanOrEqual(400)
      expect(put.status).toBeLessThan(url === undefined ? 501 : 500)
    }
    expect((await api.ask('GET', `/${name}`)).status).toBe(400)
    const nested = `{"resources":[{"value":{"key":"tg-p","metadata":{"${name}":{"polluted":true}}}}]}`
    const stored = await send('PUT', '/api/config/resources/llm.apiKey', { body: nested })
    expect(stored.status).toBe(name === '__proto__' ? 400 : 200)
    if (stored.status === 200) await api.remove('llm.apiKey', JSON.parse(stored.text).resources[0].id)
    expect(await statusWith(gateway, 'tg-stays')).toBe(200)
  })

  it.each([
    ['an id of a megabyte', '/llm.apiKey/'.padEnd(1_000_000, 'x'), [404, 414, 431]],
    ['an id of ten kilobytes', '/llm.apiKey/'.padEnd(10_000, 'x'), [404]],
    ['an id of nothing but slashes', `/llm.apiKey${'/'.repeat(2000)}`, [400, 404]],
    ['an id that is NUL', '/llm.apiKey/%00', [404]],
    ['an id that is no UTF-8', '/llm.apiKey/%ff%fe', [400]],
    ['an escape that is none', '/llm.apiKey/%zz', [400]],
    ['a way out', '/llm.apiKey/../../../../etc/passwd', [400, 404]],
    ['a way out in escapes', '/llm.apiKey/%2e%2e%2f%2e%2e%2fstatus', [404]],
  ])('%s is refused', async (_title, path, statuses) => {
    for (const method of ['GET', 'DELETE']) {
      const answer = await send(method, `/api/config/resources${path}`)
      expect(statuses).toContain(answer.status)
      expect(answer.text.length).toBeLessThan(1000)
    }
  })

  it.each([
    ['nothing', '', 400],
    ['half of JSON', '{"resources":[', 400],
    ['two objects', '{}{}', 400],
    ['NaN', '{"resources":[{"value":{"key":"k","metadata":{"n":NaN}}}]}', 400],
    ['a list', '[]', 400],
    ['a text', '"resources"', 400],
    ['a key twice', '{"resources":[],"resources":[{"value":{"key":"k"}}]}', 400],
    ['bad UTF-8', Buffer.from([0x7b, 0x22, 0xc3, 0x28, 0x22, 0x3a, 0x31, 0x7d]), 400],
    ['UTF-16', Buffer.from('{"resources":[]}', 'utf16le'), 400],
    ['lists in lists', `{"resources":${'['.repeat(200_000)}${']'.repeat(200_000)}}`, 400],
    ['objects in objects', `${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}`, 400],
    ['more than two megabytes', `{"resources":[]${' '.repeat(2 * 1024 * 1024)}}`, 413],
    [
      'a number of many digits',
      `{"resources":[{"value":{"key":"k","metadata":{"n":${'9'.repeat(10_000)}}}}]}`,
      400,
    ],
  ])('a body of %s is refused', async (_title, body, status) => {
    const before = await records()
    const answer = await send('PUT', '/api/config/resources/llm.apiKey', { body })
    expect(answer.status).toBe(status)
    expect(answer.text.length).toBeLessThan(1000)
    expect(await records()).toEqual(before)
  })

  it.each([
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'application/json; charset=utf-16',
    'application/jsonp',
    'text/json',
    '',
  ])('a body of type "%s", as forms and scripts of other sites may send it, is refused', async (type) => {
    const headers = { 'content-type': type }
    const body = '{"resources":[{"value":{"key":"tg-form"}}]}'
    expect((await send('PUT', '/api/config/resources/llm.apiKey', { headers, body })).status).toBe(415)
    expect(await statusWith(gateway, 'tg-form')).toBe(401)
  })

  it.each([
    'evil.example',
    'evil.example:PORT',
    '127.0.0.1.evil.example:PORT',
    'localhost.evil.example:PORT',
    '127.0.0.1',
    '127.0.0.1:1',
    '10.0.0.1:PORT',
    '0.0.0.0:PORT',
    '[::]:PORT',
    '127.0.0.1:PORT@evil.example',
  ])('a request that was led here by the name %s is refused', async (name) => {
    const host = name.replace('PORT', String(gateway.adminPort))
    for (const path of ['/api/config/resources', '/api/config/effective', '/api/config/status']) {
      const answer = await send('GET', path, { host })
      expect([400, 403]).toContain(answer.status)
      expect(answer.text).not.toContain('tg-stays')
    }
    const body = '{"resources":[{"value":{"key":"tg-rebound"}}]}'
    expect([400, 403]).toContain(
      (await send('PUT', '/api/config/resources/llm.apiKey', { host, body })).status,
    )
    expect(await statusWith(gateway, 'tg-rebound')).toBe(401)
  })

  it.each([
    'http://evil.example',
    'null',
    'https://127.0.0.1:PORT',
    'http://127.0.0.1:1',
    'http://localhost',
  ])('a request from a page of %s is refused, and its preflight is not answered', async (page) => {
    const headers = { origin: page.replace('PORT', String(gateway.adminPort)) }
    const body = '{"resources":[{"value":{"key":"tg-crossed"}}]}'
    const put = await send('PUT', '/api/config/resources/llm.apiKey', { headers, body })
    expect(put.status).toBe(403)
    const preflight = await send('OPTIONS', '/api/config/resources/llm.apiKey', {
      headers: { ...headers, 'access-control-request-method': 'PUT' },
    })
    expect(preflight.status).toBe(403)
    for (const { headers: sent } of [put, preflight]) {
      expect(sent).not.toHaveProperty('access-control-allow-origin')
    }
    expect(await statusWith(gateway, 'tg-crossed')).toBe(401)
  })

  it('requests that end in the middle of their body change nothing', async () => {
    const body = '{"resources":[{"value":{"key":"tg-half"}}]}'
    for (const length of [body.length + 1, 10_000_000]) {
      const connection = await rawConnect(gateway.adminPort)
      connection.send(
        `PUT /api/config/resources/llm.apiKey HTTP/1.1\r\nhost: 127.0.0.1:${gateway.adminPort}\r\n` +
          `content-type: application/json\r\ncontent-length: ${length}\r\n\r\n${body}`,
      )
      connection.socket.end()
      await connection.closed()
    }
    expect(await statusWith(gateway, 'tg-half')).toBe(401)
  })

  it('after all attacks, records are intact and no secret was logged', async () => {
    const { synchronized } = await gateway.status()
    expect(synchronized).toBe(true)
    if (url !== undefined) expect(await records()).toMatchObject([[{ value: { key: 'tg-stays' } }], []])
    await api.create('llm.model', { name: 'last', provider: 'echo' })
    expect(await statusWith(gateway, 'tg-stays', 'last')).toBe(200)
    const lines = gateway.stdout().split('\n')
    expect(lines.filter((line) => line.includes('tg-stays') || line.includes('"level":"error"'))).toEqual([])
    expect(gateway.stderr()).toBe('')
  })
})
