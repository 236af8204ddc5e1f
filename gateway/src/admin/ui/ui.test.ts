import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterEach, describe, expect, it } from 'vitest'
import type { Log } from '../../telemetry/log.ts'
import { createConsole } from './ui.ts'

const folders: string[] = []
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
})

const built = {
  'index.html':
    '<meta name="csp-nonce" content="__CSP_NONCE__"><script src="/ui/assets/main-a1b2c3d4.js"></script>',
  'favicon.svg': '<svg/>',
  'assets/main-a1b2c3d4.js': 'plain script',
  'assets/main-a1b2c3d4.js.br': 'brotli script',
  'assets/main-a1b2c3d4.js.gz': 'gzip script',
  'assets/font-a1b2c3d4.woff2': 'font',
}

function write(folder: string, files: Record<string, string>) {
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(join(folder, name, '..'), { recursive: true })
    writeFileSync(join(folder, name), content)
  }
}

function world(files: Record<string, string> = built) {
  const parent = mkdtempSync(join(tmpdir(), 'console-'))
  folders.push(parent)
  writeFileSync(join(parent, 'secret.txt'), 'outside of the console')
  const folder = join(parent, 'ui')
  write(folder, files)
  let count = 0
  const log = { error() {} } as unknown as Log
  const handle = createConsole({
    folder: pathToFileURL(`${folder}/`),
    randomBytes: (size) => new Uint8Array(size).fill(++count),
    log,
    next: async ({ target }) => ({ status: 299, headers: {}, body: Buffer.from(target) }),
  })
  async function get(target: string, headers: Record<string, string> = {}, method = 'GET') {
    const reply = await handle({ method, target, headers, body: undefined, address: '127.0.0.1' })
    const body = reply.body instanceof Uint8Array ? Buffer.from(reply.body).toString() : ''
    return { ...reply, body }
  }
  return { folder, get }
}

describe('page', () => {
  it('has a new nonce in each reply, in the policy and in the page', async () => {
    const { get } = world()
    const first = await get('/ui/')
    const second = await get('/ui/')
    const nonces = [first, second].map(({ body, headers }) => {
      const [, nonce = ''] = /content="([^"]+)"/.exec(body) ?? []
      expect(headers['content-security-policy']).toContain(`style-src 'self' 'nonce-${nonce}'`)
      return nonce
    })
    expect(new Set(nonces).size).toBe(2)
    expect(nonces).not.toContain('__CSP_NONCE__')
  })

  it('is not cached, not framed and has no permissions', async () => {
    const { headers } = await world().get('/ui/')
    expect(headers).toMatchObject({
      'cache-control': 'no-store',
      'content-type': 'text/html; charset=utf-8',
      'cross-origin-opener-policy': 'same-origin',
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
    })
    const policy = String(headers['content-security-policy'])
    expect(policy).toContain("default-src 'none'")
    expect(policy).toContain("frame-ancestors 'none'")
    expect(policy).not.toContain('unsafe')
    expect(headers['permissions-policy']).toContain('camera=()')
  })

  it.each(['/ui/llm/models', '/ui/llm/models/', '/ui/requests?range=24h', '/ui/llm/models/a%2Fb'])(
    'is served at the deep link %s',
    async (path) => {
      expect((await world().get(path)).body).toContain('csp-nonce')
    },
  )

  it('is served at deep links with dots to clients that accept HTML', async () => {
    const { get } = world()
    const link = '/ui/llm/models/gpt-4.1'
    expect((await get(link, { accept: 'text/html,*/*;q=0.8' })).status).toBe(200)
    expect((await get(link, { accept: '*/*' })).status).toBe(404)
  })

  it.each(['/', '/ui'])('is the target of the redirect from %s', async (path) => {
    const { status, headers } = await world().get(`${path}?a=1`)
    expect([status, headers['location']]).toEqual([308, '/ui/?a=1'])
  })

  it('asks for a build without files, and appears after it', async () => {
    const { folder, get } = world({})
    const missing = await get('/ui/')
    expect(missing.status).toBe(503)
    expect(missing.body).toContain('npm run ui')
    write(folder, built)
    expect((await get('/ui/')).status).toBe(200)
  })
})

describe('file', () => {
  const script = '/ui/assets/main-a1b2c3d4.js'

  it('with a hash in its name is immutable', async () => {
    const { status, headers, body } = await world().get(script)
    expect([status, body]).toEqual([200, 'plain script'])
    expect(headers).toMatchObject({
      'cache-control': 'private, max-age=31536000, immutable',
      'content-type': 'text/javascript; charset=utf-8',
      'x-content-type-options': 'nosniff',
      vary: 'accept-encoding',
    })
  })

  it('without a hash is revalidated by its tag', async () => {
    const { get } = world()
    const { headers } = await get('/ui/favicon.svg')
    expect(headers['cache-control']).toBe('no-cache')
    const again = await get('/ui/favicon.svg', { 'if-none-match': `"x", W/${headers['etag']}` })
    expect([again.status, again.body]).toEqual([304, ''])
  })

  it.each([
    ['br, gzip', 'brotli script', 'br'],
    ['gzip, deflate', 'gzip script', 'gzip'],
    ['br;q=0, gzip;q=0.5', 'gzip script', 'gzip'],
    ['identity', 'plain script', undefined],
    ['gzip;q=0.000', 'plain script', undefined],
  ])('for %s is sent as %s', async (accepted, content, coding) => {
    const { body, headers } = await world().get(script, { 'accept-encoding': accepted })
    expect([body, headers['content-encoding']]).toEqual([content, coding])
  })

  it('has a tag for each coding', async () => {
    const { get } = world()
    const plain = await get(script)
    const coded = await get(script, { 'accept-encoding': 'br' })
    expect(coded.headers['etag']).not.toBe(plain.headers['etag'])
    const other = await get(script, {
      'if-none-match': String(plain.headers['etag']),
      'accept-encoding': 'br',
    })
    expect(other.status).toBe(200)
  })

  it.each(['/ui/assets/main-00000000.js', '/ui/assets/', '/ui/assets/main-a1b2c3d4.js.br', '/ui/other.js'])(
    '%s does not exist',
    async (path) => {
      expect((await world().get(path)).status).toBe(404)
    },
  )

  it.each([
    '/ui/../secret.txt',
    '/ui/%2e%2e/secret.txt',
    '/ui/..%2fsecret.txt',
    '/ui/assets/..%5c..%5csecret.txt',
    '/ui//../../secret.txt',
    '/ui/%2Fetc/passwd.txt',
  ])('outside of the folder is never served: %s', async (path) => {
    const reply = await world().get(path, { accept: 'text/html' })
    expect(reply.body).not.toContain('outside of the console')
    expect(reply.body).not.toContain('root:')
  })
})

it('refuses other methods', async () => {
  const { status, headers } = await world().get('/ui/', {}, 'POST')
  expect([status, headers['allow']]).toEqual([405, 'GET, HEAD'])
})

it.each(['/api/config', '/uix', '/UI/'])('forwards %s', async (path) => {
  expect(await world().get(path)).toMatchObject({ status: 299, body: path })
})
