import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { createAuthority } from '../support/certificates.ts'
import { endAfter } from '../support/cleanup.ts'
import type { Gateway } from '../support/gateway.ts'
import { call, http2Client } from '../support/http-call.ts'
import { type MockServer, startMockServer } from '../support/mock-server.ts'
import { hasNginx, startNginx } from '../support/nginx.ts'
import { hasPython, startPython } from '../support/python.ts'
import { rawConnect, statusesOf } from '../support/raw-http.ts'
import { routing } from '../support/traffic.ts'
import { until } from '../support/wait.ts'

const secret = 'SECRET OF ADMIN'

/** Spellings of `/admin` for one server or another, behind a rule that denies `/admin`. */
const spellings = [
  '/admin',
  '/admin/',
  '//admin',
  '/x/../admin',
  '/x/./../admin',
  '/%61dmin',
  '/x/%2e%2e/admin',
  '/x/..%2fadmin',
  '/x/..%2Fadmin',
  '/x/%2e%2e%2fadmin',
  '/x/..%5cadmin',
  '/x/..%252fadmin',
  '/x/%252e%252e/admin',
  '/x/..;/admin',
  '/x/..;a=b/admin',
  '/%2fadmin',
  '/%2Fadmin',
  '/%5cadmin',
  '/%252fadmin',
  '/%2e/admin',
  '/.%2fadmin',
  '/;/admin',
  '/;x=y/admin',
  '/admin;x',
  '/admin%3bx',
  '/admin%2f',
  '/admin%2fusers',
  '/admin%00',
  '/admin%2500',
  '/admin%3fx',
  '/admin%23x',
  '/%2561dmin',
  '/x%2f..%2fadmin',
  '/x//..%2f/admin',
  '/x/%2e%2e%5cadmin',
]

type Server = { name: string; host: string; installed: boolean; start(): Promise<number> }

const wsgiProgram = `
from flask import Flask, request
app = Flask(__name__)
app.url_map.strict_slashes = False
@app.route('/admin', defaults={'rest': ''}, methods=['GET', 'DELETE'])
@app.route('/admin/<path:rest>')
def admin(rest):
    return '${secret}'
@app.route('/', defaults={'path': ''})
@app.route('/<path:path>')
def other(path):
    return 'seen ' + request.path
`

const aiohttpProgram = `
import sys
from aiohttp import web
async def admin(request):
    return web.Response(text='${secret}')
async def other(request):
    return web.Response(text='seen ' + request.path)
app = web.Application()
app.router.add_get('/admin', admin)
app.router.add_get('/admin/{rest:.*}', admin)
app.router.add_get('/{rest:.*}', other)
web.run_app(app, host='127.0.0.1', port=int(sys.argv[1]), print=None)
`

function folderWith(name: string, content: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-python-'))
  writeFileSync(join(folder, name), content)
  endAfter('file', () => rmSync(folder, { recursive: true, force: true }))
  return folder
}

const servers: readonly Server[] = [
  {
    name: 'nginx',
    host: 'nginx.test',
    installed: hasNginx,
    start: async () => {
      const files = { 'index.html': 'home', admin: secret }
      return (await startNginx(files, createAuthority().issue('nginx.internal'))).port
    },
  },
  {
    name: 'flask on waitress',
    host: 'waitress.test',
    installed: hasPython(['flask', 'waitress']),
    start: () => {
      const folder = folderWith('paths_site.py', wsgiProgram)
      return startPython((port) => ['-m', 'waitress', `--listen=127.0.0.1:${port}`, 'paths_site:app'], folder)
    },
  },
  {
    name: 'flask on gunicorn',
    host: 'gunicorn.test',
    installed: hasPython(['flask', 'gunicorn']),
    start: () => {
      const folder = folderWith('paths_site.py', wsgiProgram)
      return startPython(
        (port) => ['-m', 'gunicorn', '--threads', '8', '-b', `127.0.0.1:${port}`, 'paths_site:app'],
        folder,
      )
    },
  },
  {
    name: 'aiohttp',
    host: 'aiohttp.test',
    installed: hasPython(['aiohttp']),
    start: () => startPython((port) => ['-c', aiohttpProgram, String(port)]),
  },
]

const deniesAdmin = { authorization: { rules: [{ deny: 'request.path.startsWith("/admin")' }] } }
const upstreams = new Map<string, number>()
let gateway: Gateway
let port = 0
let mock: MockServer

beforeAll(async () => {
  const installed = servers.filter((server) => server.installed)
  const started = await Promise.all(installed.map((server) => server.start()))
  for (const [index, { host }] of installed.entries()) upstreams.set(host, started[index] ?? 0)
  mock = await startMockServer((asked, response) => response.end(`seen ${asked.path}`), 'file')
  const running = await routing([...serverRoutes(), ...mockRoutes()], llmSection, { lifetime: 'file' })
  gateway = running.gateway
  port = running.port
})

function serverRoutes() {
  return [...upstreams].map(([host, upstream]) => ({
    name: host,
    hostnames: [host],
    policies: deniesAdmin,
    backends: [{ host: `127.0.0.1:${upstream}` }],
  }))
}

function mockRoutes() {
  const backends = [{ host: `127.0.0.1:${mock.port}` }]
  const on = (pathPrefix: string) => ({ matches: [{ path: { pathPrefix } }], backends })
  const denying = (deny: string) => ({ policies: { authorization: { rules: [{ deny }] } } })
  return [
    { name: 'public', ...on('/public') },
    { name: 'private', ...on('/private') },
    { name: 'open', allowAmbiguousPaths: true, ...on('/open') },
    {
      name: 'users',
      ...on('/users'),
      ...denying('request.path == "/users/x/admin" || request.path == "/users/@root"'),
    },
    { name: 'methods', ...on('/methods'), ...denying('request.method == "DELETE"') },
  ]
}

const llmSection = {
  llm: {
    models: [{ name: 'echo', provider: 'echo' }],
    policies: { authorization: { rules: [{ deny: 'llm.operation == "embeddings"' }] } },
  },
}

describe.each(servers)('rules on paths in front of $name', ({ name, host, installed }) => {
  describe.skipIf(!installed)(`(skipped where ${name} is not installed)`, () => {
    it('apply over HTTP/1 to every spelling that the server understands', async () => {
      let understood = 0
      for (const path of spellings) {
        const direct = await call(upstreams.get(host) ?? 0, path)
        if (direct.text.includes(secret)) understood += 1
        const answer = await call(port, path, { host })
        expect(`${path} ${answer.text}`).not.toContain(secret)
        expect([400, 403]).toContain(answer.status)
      }
      // The rule protects something only if the server itself answers to several spellings.
      expect(understood).toBeGreaterThan(2)
    })

    it('apply over HTTP/2', async () => {
      const { ask } = http2Client(port)
      for (const path of spellings) {
        const answer = await ask(path, { authority: host })
        expect(`${path} ${answer.text}`).not.toContain(secret)
        expect([400, 403]).toContain(answer.status)
      }
    })
  })
})

describe('ambiguous paths', () => {
  it.each([
    ['/public/..%2fprivate', 'a dot segment'],
    ['/public%2f..%2fprivate', 'a dot segment'],
    ['/public/a%2f%2fb', 'an empty segment'],
    ['/public/;a=b', 'an empty segment'],
    ['/public/a%00', 'a NUL character'],
    ['/public%3b/x', 'another route'],
    ['/public%2fx', 'another route'],
    ['/users;x/y', 'another route'],
  ])('are refused in both versions: %s, for %s', async (path, reason) => {
    const seen = mock.seen.length
    const refused = { status: 400, text: expect.stringContaining(reason) }
    expect(await call(port, path)).toMatchObject(refused)
    expect(await http2Client(port).ask(path)).toMatchObject(refused)
    expect(mock.seen.length).toBe(seen)
  })

  it.each([
    '/public/group%2Fproject',
    '/public/a;v=1/b',
    '/public/caf%C3%A9%20au%20lait',
    '/public/100%25',
    '/users/x%2Fother',
  ])('pass where every reading belongs to the route and its rules permit it: %s', async (path) => {
    const passed = { status: 200, text: `seen ${path}` }
    expect(await call(port, path)).toMatchObject(passed)
    expect(await http2Client(port).ask(path)).toMatchObject(passed)
  })

  it.each([
    '/users/x%2fadmin',
    '/users/x%5Cadmin',
    '/users/x%252fadmin',
    '/users/x/admin;v=1',
    '/users/%40root',
  ])('are refused where a rule refuses the decoded path: %s', async (path) => {
    expect((await call(port, path)).status).toBe(403)
    expect((await http2Client(port).ask(path)).status).toBe(403)
  })

  it.each(['/open/a%2F%2Fb', '/open/..%2Fprivate', '/open/a%00', '/open/;x'])(
    'pass unchanged on a route that allows them: %s',
    async (path) => {
      expect(await call(port, path)).toMatchObject({ status: 200, text: `seen ${path}` })
    },
  )

  it('are named in the access log', async () => {
    await call(port, '/public/named..%2f..%2fx')
    const logged = await until('the line of the request', () =>
      gateway.requests().find(({ path }) => path === '/public/named..%2F..%2Fx'),
    )
    expect(logged).toMatchObject({ status: 400, refusedBy: 'ambiguous_path', route: 'public' })
  })
})

describe('methods', () => {
  it.each(['delete', 'Delete', 'get', 'FOO'])('%s is refused in both versions', async (method) => {
    expect((await http2Client(port).ask('/methods', { method })).status).toBe(400)
    const raw = await rawConnect(port)
    raw.send(`${method} /methods HTTP/1.1\r\nhost: x\r\n\r\n`)
    expect(statusesOf(await raw.closed())).toEqual([400])
  })

  it('are the same set for rules in both versions', async () => {
    const { ask } = http2Client(port)
    expect((await ask('/methods', { method: 'DELETE' })).status).toBe(403)
    expect((await ask('/methods', { method: 'PATCH' })).status).toBe(200)
    expect((await call(port, '/methods', { method: 'DELETE' })).status).toBe(403)
    expect((await call(port, '/methods', { method: 'PATCH' })).status).toBe(200)
  })
})

describe('rules on LLM operations', () => {
  const post = { method: 'POST', headers: { 'content-type': 'application/json' } }

  it.each(['/v1/embeddings', '/x/v1/embeddings', '/embeddings', '/v1/v1/embeddings', '/a/b/v1/embeddings/'])(
    'apply to every path of the operation: %s',
    async (path) => {
      const body = JSON.stringify({ model: 'echo', input: 'x' })
      expect((await call(gateway.port, path, { ...post, body })).status).toBe(403)
    },
  )

  it('permit other operations, those without a body included', async () => {
    const body = JSON.stringify({ model: 'echo', messages: [{ role: 'user', content: 'hi' }] })
    expect((await call(gateway.port, '/x/v1/chat/completions', { ...post, body })).status).toBe(200)
    expect((await call(gateway.port, '/v1/models')).status).toBe(200)
  })
})
