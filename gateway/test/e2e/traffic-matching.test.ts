import { beforeAll, describe, expect, it } from 'vitest'
import { call, http2Client } from '../support/http-call.ts'
import { rawExchange } from '../support/raw-http.ts'
import { routing } from '../support/traffic.ts'

/** A route that answers with its name. */
function route(
  name: string,
  match: object | object[] | undefined,
  more: object = {},
): Record<string, unknown> {
  const matches = match === undefined ? {} : { matches: Array.isArray(match) ? match : [match] }
  return { name, ...matches, policies: { directResponse: { status: 200, body: name } }, ...more }
}

const exact = (path: string) => ({ path: { exact: path } })
const prefix = (path: string) => ({ path: { pathPrefix: path } })
const regex = (path: string) => ({ path: { regex: path } })

let port = 0

beforeAll(async () => {
  const running = await routing(
    [
      route('everything', undefined),
      route('api', prefix('/api')),
      route('api-v1', prefix('/api/v1/')),
      route('exact', exact('/api/v1/only')),
      route('pattern', regex('/files/[a-z]+\\.(txt|md)'), { hostnames: ['files.test'] }),
      route('all-files', prefix('/files/a'), { hostnames: ['files.test'] }),
      route('posted', { ...prefix('/api'), method: 'POST' }),
      route('team', { ...prefix('/api'), headers: [{ name: 'X-Team', value: { exact: 'search' } }] }),
      route('teams', {
        ...prefix('/api'),
        headers: [
          { name: 'x-team', value: { regex: 's.*' } },
          { name: 'x-stage', value: { exact: 'new' } },
        ],
      }),
      route('asked', { ...prefix('/api'), query: [{ name: 'v', value: { exact: '2' } }] }),
      route('either', [exact('/one'), exact('/two')]),
      route('directory', exact('/three/')),
      route('by-host', undefined, { hostnames: ['a.test'] }),
      route('by-wildcard', undefined, { hostnames: ['*.test'] }),
      route('by-deep-wildcard', undefined, { hostnames: ['*.deep.test'] }),
      route('by-host-and-path', prefix('/api'), { hostnames: ['a.test', 'b.test'] }),
    ],
    {},
    { lifetime: 'file' },
  )
  port = running.port
})

async function chosen(path: string, options: Parameters<typeof call>[2] = {}): Promise<string> {
  return (await call(port, path, { host: 'elsewhere', ...options })).text
}

describe('a path', () => {
  it.each([
    ['/', 'everything'],
    ['/api', 'api'],
    ['/api/', 'api'],
    ['/apis', 'everything'],
    ['/API', 'everything'],
    ['/api/v1', 'api-v1'],
    ['/api/v12', 'api'],
    ['/api/v1/x', 'api-v1'],
    ['/api/v1/only', 'exact'],
    ['/api/v1/only/more', 'api-v1'],
    ['/one', 'either'],
    ['/two?three', 'either'],
    ['/two/', 'everything'],
    ['/three/', 'directory'],
    ['/three', 'everything'],
    ['/api/v1/only/', 'api-v1'],
    ['/api?v=2', 'asked'],
    ['/api?v=3&v=2', 'api'],
    ['/api?x&v=2', 'asked'],
    ['/api?w=2%23v=2', 'api'],
  ])('%s goes to %s', async (path, expected) => {
    expect(await chosen(path)).toBe(expected)
  })

  it.each([
    ['/x/../api', 'api'],
    ['//api', 'api'],
    ['/api/./v1//x', 'api-v1'],
    ['/%61pi', 'api'],
    ['/x/%2e%2e/api/v1/only', 'exact'],
    ['/api/v1/%6fnly', 'exact'],
    ['/api/../..', 'everything'],
  ])('%s is matched by its meaning: %s', async (path, expected) => {
    const answer = await rawExchange(port, `GET ${path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`)
    expect(answer).toMatch(/^HTTP\/1\.1 200/)
    expect(answer.split('\r\n\r\n')[1]).toBe(expected)
  })

  it('with an escaped slash is no path of more segments', async () => {
    const answer = await call(port, '/api%2fv1%2fonly', { host: 'x' })
    expect([answer.status, answer.text]).not.toEqual([200, 'exact'])
    expect(answer.text).not.toBe('api-v1')
  })
})

describe('other properties of a request', () => {
  it.each([
    [{ method: 'POST' }, 'posted'],
    [{ headers: { 'x-team': 'search' } }, 'team'],
    [{ headers: { 'x-team': 'Search' } }, 'api'],
    [{ headers: { 'x-team': 'sales', 'x-stage': 'new' } }, 'teams'],
    [{ headers: { 'x-team': 'search', 'x-stage': 'new' } }, 'teams'],
    [{ method: 'POST', headers: { 'x-team': 'search' } }, 'posted'],
  ])('%o goes to %s', async (options, expected) => {
    expect(await chosen('/api', options)).toBe(expected)
  })

  it.each([
    ['a.test', '/', 'by-host'],
    ['a.test:1234', '/', 'by-host'],
    ['A.Test', '/', 'by-host'],
    ['a.test', '/api/v1/only', 'by-host-and-path'],
    ['a.test', '/one', 'by-host'],
    ['b.test', '/api', 'by-host-and-path'],
    ['b.test', '/', 'by-wildcard'],
    ['x.y.test', '/', 'by-wildcard'],
    ['x.deep.test', '/', 'by-deep-wildcard'],
    ['deep.test', '/', 'by-wildcard'],
    ['test', '/', 'everything'],
    ['test.', '/', 'everything'],
    ['files.test', '/files/a.txt', 'pattern'],
    ['files.test', '/files/a.txt.exe', 'by-wildcard'],
    ['files.test', '/x/files/a.txt', 'by-wildcard'],
    ['files.test', '/files/a', 'all-files'],
    ['files.test', '/files/a.txt/', 'by-wildcard'],
    ['[::1]', '/', 'everything'],
  ])('host %s with path %s goes to %s', async (host, path, expected) => {
    expect(await chosen(path, { host })).toBe(expected)
  })

  it('chooses the same over HTTP/2', async () => {
    const { ask } = http2Client(port)
    expect((await ask('/api/v1/only', { authority: 'x' })).text).toBe('exact')
    expect((await ask('/', { authority: 'b.test' })).text).toBe('by-wildcard')
    expect((await ask('/api', { authority: 'x', headers: { 'x-team': 'search' } })).text).toBe('team')
  })

  it('is refused when an absolute target names another host than the header', async () => {
    const raw = (target: string, host: string) =>
      rawExchange(port, `GET ${target} HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`)
    expect(await raw('http://a.test/x', 'A.test')).toMatch(/by-host$/)
    expect(await raw('http://a.test', 'a.test')).toMatch(/by-host$/)
    for (const target of ['http://a.test/x', 'http://a.test@b.test/', 'http://b.test:81/', 'HTTP://?b.test'])
      expect(await raw(target, 'b.test')).toMatch(/^HTTP\/1\.1 400/)
  })
})

describe('a gateway shared with llm', () => {
  it('leaves to llm only the requests that no route is for, regular expressions included', async () => {
    const shared = await routing([route('pattern', regex('/v[0-9]+/files/.*'))], {
      llm: { port: undefined, models: [{ name: 'echo', provider: 'echo' }] },
    })
    expect(await call(shared.port, '/v1/files/a')).toMatchObject({ status: 200, text: 'pattern' })
    expect(JSON.parse((await call(shared.port, '/v1/models')).text)).toMatchObject({ data: [{ id: 'echo' }] })
  })
})
