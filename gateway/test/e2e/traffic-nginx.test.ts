import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { promisify } from 'node:util'
import { gunzipSync } from 'node:zlib'
import { beforeAll, describe, expect, it } from 'vitest'
import { createAuthority } from '../support/certificates.ts'
import { freePort } from '../support/free-port.ts'
import type { Gateway } from '../support/gateway.ts'
import { call, http2Client } from '../support/http-call.ts'
import { hasNginx, type Nginx, nginxProgram, startNginx } from '../support/nginx.ts'
import { certificateFiles, routing } from '../support/traffic.ts'

const run = promisify(execFile)
const curl = '/usr/bin/curl'
const h2load = '/usr/bin/h2load'
const text = 'A line of text that compresses well.\n'.repeat(200)

let nginx: Nginx
let gateway: Gateway
let port = 0
let secure = 0
let trust = ''

describe.skipIf(!hasNginx)(`nginx as the upstream (skipped where there is no ${nginxProgram})`, () => {
  beforeAll(async () => {
    const authority = createAuthority()
    nginx = await startNginx(
      { 'index.html': '<p>home</p>', 'text.txt': text, 'large.bin': 'b'.repeat(300_000), 'empty.txt': '' },
      authority.issue('nginx.internal'),
    )
    const root = certificateFiles(authority, 'file').cert
    trust = root
    const own = certificateFiles(authority.issue('localhost', '127.0.0.1'), 'file')
    secure = await freePort()
    const running = await routing(
      [
        {
          name: 'tls',
          gateways: ['default', 'secure'],
          matches: [{ path: { pathPrefix: '/tls' } }],
          policies: { urlRewrite: { path: { prefix: '/' } } },
          backends: [
            {
              host: `127.0.0.1:${nginx.tlsPort}`,
              policies: { http: { version: 'HTTP/2' }, backendTLS: { root, hostname: 'nginx.internal' } },
            },
          ],
        },
        { name: 'plain', gateways: ['default', 'secure'], backends: [{ host: `127.0.0.1:${nginx.port}` }] },
      ],
      { gateways: { secure: { port: secure, tls: { cert: own.cert, key: own.key } } } },
      { lifetime: 'file' },
    )
    gateway = running.gateway
    port = running.port
  })

  it('serves files, ranges, and conditional requests', async () => {
    const whole = await call(port, '/text.txt')
    expect(whole).toMatchObject({ status: 200, text, headers: { 'content-length': String(text.length) } })
    const { etag = '', 'last-modified': modified } = whole.headers
    const part = await call(port, '/text.txt', { headers: { range: 'bytes=10-19' } })
    expect(part).toMatchObject({
      status: 206,
      text: text.slice(10, 20),
      headers: { 'content-range': `bytes 10-19/${text.length}` },
    })
    const parts = await call(port, '/text.txt', { headers: { range: 'bytes=0-1,5-6' } })
    expect(parts.headers['content-type']).toMatch(/^multipart\/byteranges/)
    expect((await call(port, '/text.txt', { headers: { range: 'bytes=900000-' } })).status).toBe(416)
    for (const headers of [{ 'if-none-match': etag }, { 'if-modified-since': modified }])
      expect(await call(port, '/text.txt', { headers })).toMatchObject({ status: 304, text: '' })
    const head = await call(port, '/text.txt', { method: 'HEAD' })
    expect(head).toMatchObject({ status: 200, text: '', headers: { 'content-length': String(text.length) } })
    expect(await call(port, '/empty.txt')).toMatchObject({ status: 200, text: '' })
    expect((await call(port, '/missing')).status).toBe(404)
    expect((await call(port, '/')).text).toBe('<p>home</p>')
  })

  it('compresses for clients that can read it, and for no others', async () => {
    const zipped = await call(port, '/text.txt', { headers: { 'accept-encoding': 'gzip' } })
    expect(zipped.headers['content-encoding']).toBe('gzip')
    expect(gunzipSync(zipped.bytes).toString()).toBe(text)
    expect((await call(port, '/text.txt')).headers['content-encoding']).toBeUndefined()
    const { headers } = await http2Client(port).ask('/text.txt', { headers: { 'accept-encoding': 'gzip' } })
    expect(headers['content-encoding']).toBe('gzip')
  })

  it('keeps connections, and closes them whenever it likes without a failed request', async () => {
    const counts: Record<string, number> = {}
    for (let count = 0; count < 40; count++) {
      const answer = await call(port, '/connection')
      expect(answer.status).toBe(200)
      const [connection = ''] = answer.text.split(' ')
      counts[connection] = (counts[connection] ?? 0) + 1
    }
    expect(Object.keys(counts).length).toBeLessThan(20)
    expect(Math.max(...Object.values(counts))).toBe(5)
    const many = await Promise.all(Array.from({ length: 100 }, () => call(port, '/connection')))
    expect(many.every(({ status }) => status === 200)).toBe(true)
  })

  it('receives method, path and host unchanged in meaning', async () => {
    const answer = await call(port, '/seen/a%20b/%C3%A4?x=%2F&y', { method: 'DELETE', host: 'asked.test' })
    expect(answer.text).toBe(`DELETE /seen/a%20b/%C3%A4?x=%2F&y 127.0.0.1:${nginx.port} 127.0.0.1 HTTP/1.1`)
    expect((await call(port, '/old/x')).headers.location).toMatch(/\/new\/$/)
    expect((await call(port, '/gone')).status).toBe(410)
    expect((await call(port, '/drop')).status).toBe(502)
  })

  it('takes uploads, and refuses those that are too large for it with its own answer', async () => {
    const upload = (size: number) => call(port, '/upload', { method: 'POST', body: 'x'.repeat(size) })
    expect(await upload(900_000)).toMatchObject({ status: 200, text: expect.stringMatching(/^POST|^GET/) })
    expect((await upload(3_000_000)).status).toBe(413)
  })

  it('answers slowly, and all of it arrives', async () => {
    expect((await call(port, '/slow')).bytes.length).toBe(300_000)
  })

  it('is reached over TLS with HTTP/2', async () => {
    expect((await call(port, '/tls/seen/x?y')).text).toBe('GET /seen/x?y HTTP/2.0 nginx.internal')
    expect((await call(port, '/tls/text.txt')).text).toBe(text)
    const { ask } = http2Client(port)
    // The server ends a connection after 100 requests, in the middle of others.
    const asked = Array.from({ length: 10 }, async () => {
      for (let count = 0; count < 50; count++) expect((await ask('/tls/text.txt')).text).toBe(text)
    })
    await Promise.all(asked)
  })

  it.skipIf(!existsSync(curl))('is reached by curl in every version it speaks', async () => {
    const asked = async (...args: string[]) => {
      const { stdout } = await run(curl, ['-sS', '-w', ' %{http_version} %{http_code}', ...args])
      return stdout
    }
    const plain = `http://127.0.0.1:${port}/index.html`
    const tls = `https://localhost:${secure}/index.html`
    expect(await asked('--http1.0', plain)).toBe('<p>home</p> 1.1 200')
    expect(await asked('--http1.1', plain)).toBe('<p>home</p> 1.1 200')
    expect(await asked('--http2-prior-knowledge', plain)).toBe('<p>home</p> 2 200')
    expect(await asked('--http2', plain)).toBe('<p>home</p> 1.1 200')
    expect(await asked('--http2', '--cacert', trust, tls)).toBe('<p>home</p> 2 200')
    expect(await asked('--http1.1', '--cacert', trust, tls)).toBe('<p>home</p> 1.1 200')
    expect(await asked('--compressed', '--http2-prior-knowledge', `http://127.0.0.1:${port}/text.txt`)).toBe(
      `${text} 2 200`,
    )
    expect(
      await asked('-T', '/etc/hostname', '-H', 'expect: 100-continue', `http://127.0.0.1:${port}/seen`),
    ).toMatch(/^PUT .* 200$/)
  })

  it.skipIf(!existsSync(h2load))('is asked a lot by h2load, without a failure', async () => {
    for (const url of [`http://127.0.0.1:${port}/index.html`, `https://localhost:${secure}/index.html`]) {
      const { stdout } = await run(h2load, ['-n', '3000', '-c', '10', '-m', '20', url])
      expect(stdout).toMatch(
        /3000 total, 3000 started, 3000 done, 3000 succeeded, 0 failed, 0 errored, 0 timeout/,
      )
      expect(stdout).toMatch(/status codes: 3000 2xx/)
      expect(stdout).toMatch(/Application protocol: h2/)
    }
    expect((await gateway.status()).synchronized).toBe(true)
  })
})
